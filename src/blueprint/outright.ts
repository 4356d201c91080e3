import type { Tx } from '../db/client.ts'
import type { Statement } from '../db/sql.ts'
import { own } from '../json-object.ts'
import type { Actor } from '../permissions.ts'
import { maxAhead } from './ahead.ts'
import type { Step } from './compile.ts'
import { Find } from './document.ts'
import { decidesRights } from './escalation.ts'
import type { Finding } from './inspect.ts'
import type { Look } from './look.ts'
import type { Rights } from './rights.ts'

/**
 * A document of which nothing is there yet is written outright: all its statements are known before the first one is
 * sent, so they leave together, and the unique indexes behind identifiers say what a look would have said
 * (docs/adr/0020-new-rows-are-written-outright.md).
 */

/** An entry, by its id, whose row gets the next number of its table. */
export type Draw = { readonly entry: string; readonly table: string }

/** The numbers that were drawn, by entry id. */
export type Drawn = Readonly<Record<string, number>>

/** What is recorded of a document that can be written outright: the keys to draw, and the rights it was judged by. */
export type Outright = { readonly draws: readonly Draw[]; readonly rights: Rights }

/**
 * @param findings of a check without faults
 * @returns undefined when the document has to be looked at to be written
 */
export function outrightFor(
  findings: readonly Finding[],
  { impersonator, isSuperuser, permissions }: Actor,
): Outright | undefined {
  // Who acts as another is judged with him, in the transaction.
  const draws = impersonator === undefined ? drawsFor(findings) : undefined
  // A superuser needs none of his permissions.
  return draws && { draws, rights: { superuser: isSuperuser, permissions: isSuperuser ? [] : [...permissions] } }
}

/** @returns what has to be drawn for rows that are all new; undefined when a question has to be asked to write them */
export function drawsFor(findings: readonly Finding[]): readonly Draw[] | undefined {
  const isOutright =
    findings.length <= maxAhead && findings.every((finding) => isAlone(finding) && asksNothing(finding))
  if (!isOutright) return undefined
  return findings.flatMap(({ step: { id, model } }) =>
    id !== undefined && model.key === 'integer' ? [{ entry: id, table: model.table }] : [],
  )
}

/** A new row of which the database would refuse a second one, and whose key will be known. */
function isAlone({ action, step: { id, model, identifiers } }: Finding): boolean {
  // One member that identifies has a unique index; several together have none.
  const isIndexed =
    identifiers.size === 1 &&
    model.identifiers.some((set) => set.length === 1 && set.every((name) => identifiers.has(name)))
  return action === 'create' && isIndexed && (model.key === 'uuid' || id !== undefined)
}

/** A row that can be made without a question: about rights, the time, or another row. */
function asksNothing({ step }: Finding): boolean {
  const finds = [...step.identifiers.values(), ...step.attrs.values()].flat().some((value) => value instanceof Find)
  return !finds && step.model.derive === undefined && !decidesRights(step)
}

/** What looks would answer, were all as it was when the keys were drawn. */
export function suppose(steps: readonly Step[], drawn: Drawn): ReadonlyMap<Step, Look> {
  return new Map(steps.map((step) => [step, { rows: [], fresh: own(drawn, step.id) ?? null, missing: {}, taken: {} }]))
}

/** It has turned out otherwise than was supposed: somebody has to look. */
export class Unforeseen extends Error {
  override readonly name = 'Unforeseen'
}

export type Draft = {
  /** Keeps what is sent. Whoever asks it something is told `Unforeseen`. */
  readonly tx: Tx
  sendTo(tx: Tx): void
}

/** A transaction on paper: it is sent as a whole, or not at all. */
export function draft(): Draft {
  const sent: Parameters<Tx['send']>[] = []
  const ask = async (_: Statement): Promise<never> => {
    throw new Unforeseen('a document cannot be written without asking the database')
  }
  return {
    tx: {
      transaction: true,
      query: ask,
      send: (...statement) => void sent.push(statement),
      announce: () => {
        throw new Error('whoever finishes a run announces it')
      },
    },
    sendTo: (tx) => {
      for (const statement of sent) tx.send(...statement)
    },
  }
}
