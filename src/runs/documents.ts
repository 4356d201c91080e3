import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Keyring } from '../db/seal.ts'
import type { Blueprint, Entry } from '../document/document.ts'
import { parse } from '../document/yaml.ts'
import { Problem } from '../errors.ts'
import type { ActorKeys } from '../permissions.ts'
import type { Conditions } from '../plan/engine.ts'
import { sealedColumn } from './ledger.ts'
import { isFinished } from './life.ts'
import { conditionsOf, storedAuthors, submitterOf } from './options.ts'

/** The documents of former runs. */

/** A sealed document; null when it was deleted. */
export type SealedDocument = { readonly holder: string; readonly blueprint: string | null }

/** Reads the sealed document and the run that holds it: a later one, when that changed nothing. */
export async function readDocument(
  db: Db,
  { id, blueprint, document }: Pick<FormerRun, 'id' | 'blueprint' | 'document'>,
): Promise<SealedDocument> {
  if (blueprint !== null || document === null) return { holder: id, blueprint }
  const latest = await db.run.findFirst({
    where: { document, blueprint: { not: null } },
    select: { id: true, blueprint: true },
  })
  return { holder: latest?.id ?? id, blueprint: latest?.blueprint ?? null }
}

/** @throws when it was sealed under another key, or by a version with another form */
export const openDocument = (
  keyring: Keyring,
  { holder, blueprint }: { readonly holder: string; readonly blueprint: string },
): Promise<Blueprint> => parse(keyring.open(blueprint, sealedColumn(holder, 'blueprint')))

/** The path at which errors of an entry are reported: that of the route by which the document was sent. */
export const pathsOf =
  ({ slug }: { readonly slug: string | null }) =>
  ({ id }: Entry, index: number) =>
    id === undefined || slug === null ? ['entries', index] : [id]

const formerSelect = {
  id: true,
  state: true,
  title: true,
  kind: true,
  slug: true,
  submitterPk: true,
  blueprint: true,
  document: true,
  options: true,
  format: true,
  applied: true,
  finishedAt: true,
  planTag: true,
  logs: true,
  changes: true,
} satisfies Prisma.RunSelect

export type FormerRun = Prisma.RunGetPayload<{ select: typeof formerSelect }>

export const readFormerRun = (db: Db, id: string): Promise<FormerRun | null> =>
  db.run.findUnique({ where: { id }, select: formerSelect })

/** @property without the indexes of entries that are no part of the document */
export type FormerDocument = {
  readonly blueprint: Blueprint
  readonly conditions: Conditions
  readonly without: readonly number[]
}

/**
 * The document of a run that has ended, with the conditions under which it was submitted.
 *
 * @throws {Problem} `conflict` for a run that has not ended, and when its document cannot be read any more
 */
export async function documentOf(db: Db, keyring: Keyring, run: FormerRun): Promise<FormerDocument> {
  if (!isFinished(run.state)) throw new Problem('conflict', 'This run has not ended: wait for its outcome.')
  const { holder, blueprint } = await readDocument(db, run)
  if (blueprint === null) throw new Problem('conflict', 'The document of this run is no longer stored: send it again.')
  try {
    const opened = await openDocument(keyring, { holder, blueprint })
    return { blueprint: opened, conditions: conditionsOf(run), without: notExecuted(opened, run) }
  } catch (cause) {
    const why = 'it was sealed under another SECRET_KEY, or by another version'
    throw new Problem('conflict', `The document of this run cannot be opened: ${why}. Send it again.`, { cause })
  }
}

/** Runs of earlier formats do not record to which entry a change belongs. */
const firstWithEntries = 6

const changesOf = z.array(z.object({ action: z.string(), entry: z.int().nullish() })).nullable()

/**
 * The entries that a run skipped, or left as they were: their effect was not judged then, and was not shown in the plan of that
 * run. A run that does not record its effect counts all entries with conditions.
 */
function notExecuted({ entries }: Blueprint, { format, applied, planTag, changes, options }: FormerRun): number[] {
  const { data } = changesOf.safeParse(changes)
  const isKnown = data !== undefined && format >= firstWithEntries && (applied === true || planTag !== null)
  /** Whether an entry did anything, by its index. */
  const did = new Map<number, boolean>()
  let next = 0
  for (const { action, entry = next } of data ?? []) {
    if (entry === null) continue
    did.set(entry, did.get(entry) === true || action !== 'unchanged')
    next = entry + 1
  }
  const without = new Set(conditionsOf({ options }).without)
  const isOut = ({ conditions, state }: Entry, index: number): boolean => {
    if (without.has(index)) return true
    if (!isKnown) return conditions !== undefined
    return did.get(index) !== true && (!did.has(index) || state === 'created' || state === 'absent')
  }
  return entries.flatMap((entry, index) => (isOut(entry, index) ? [index] : []))
}

/** The submitters of a document: that of its run, and those of the former runs from which the run has it. Each once. */
export function authorsOf(run: Pick<FormerRun, 'submitterPk' | 'options'>): ActorKeys[] {
  const { authors = [], ...keys } = submitterOf(run)
  const all = [...authors, { pk: run.submitterPk, ...keys }]
  return [...new Map(all.map((each) => [JSON.stringify(storedAuthors([each])), each])).values()]
}
