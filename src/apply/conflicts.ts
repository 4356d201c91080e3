import type { EngineReader } from '../db/engine-tx.ts'
import type { Step } from '../plan/compile.ts'
import type { Acknowledgements, Conditions } from '../plan/engine.ts'
import type { Finding } from '../plan/inspect.ts'
import { unnamedMembers } from '../rights/grants.ts'
import type { Ownership } from './ownership.ts'
import { rowName } from './refusal.ts'

/**
 * What the submitter has to acknowledge before an entry is applied.
 *
 * @param steps the whole document
 * @returns a text for each, without a full stop
 */
export async function conflictsOf(
  reader: EngineReader,
  finding: Finding,
  steps: readonly Step[],
  { conflict }: Ownership,
  { allow }: Conditions,
): Promise<string[]> {
  const members = allow.grants ? null : await unnamedMembers(reader, finding, steps)
  return [
    ...(conflict === null ? [] : [unless('takeover', conflict)]),
    ...(members === null ? [] : [unless('grants', givesRights(finding, members))]),
  ]
}

const givesRights = (finding: Finding, members: string): string =>
  `${rowName(finding)} is there already, and gives rights to members whom the document does not name: ${members}`

/** @param word of `Gatewright-Allow` */
const unless = (word: keyof Acknowledgements, conflict: string): string =>
  `${conflict}. Gatewright-Allow: ${word} applies it all the same`
