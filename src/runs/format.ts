import { NotYet } from './life.ts'

/**
 * The format of a run: the lowest version of a worker that can execute it correctly. A new field of a run that an older worker
 * would ignore, or a text that it cannot read, takes the next number here. Each run has the format of the API that recorded it.
 *
 * 1: version 0.1.0. 2: envelopes `v2`, owners, ceilings of tokens, documents that a later run holds. 3: plans, and applies of a
 * reviewed plan. 4: deletions that follow from a document, renames and prunes. 5: overlaps of secrets. Version 0.2.0. 6: secrets
 * for new objects only; an entry that gives rights reaches only the users whom a document names; roles may be bound to owners;
 * history of objects; resets; owners of entries; authors of former documents, and the entries
 * that are no part of them. 7: stacks. 8: trusted issuers, and the job that submitted a run.
 */
export const runFormat = 8

/** Workers of earlier formats do not check the format of a run. */
export const firstCheckedFormat = 2

/** A newer version recorded the run: it stays queued for a worker of that version. */
export class NewerRun extends NotYet {
  constructor(format: number) {
    super(
      `left in the queue for a worker of a newer version: the run is of format ${format}, and this worker knows ${runFormat}. Replace this worker.`,
    )
  }
}
