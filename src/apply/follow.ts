import type { EngineReader } from '../db/engine-tx.ts'
import type { Registry } from '../models/registry.ts'
import type { Step } from '../plan/compile.ts'
import type { Conditions, Mode } from '../plan/engine.ts'
import { bereft, type Holder, holdersOf, type NamedRow, type Orphan } from '../plan/holders.ts'
import type { Finding } from '../plan/inspect.ts'

/**
 * What follows from a document for rows that it does not name: a provider that no application has any more, an application
 * that lost its provider. They are reported in the logs, or deleted if the submitter asked for it
 * (docs/adr/0044-what-follows-from-a-document.md).
 */

/** The deletion of a row, by its name: it takes the lock that documents take which name the row. */
export const removal = ({ model, pk, name }: NamedRow): Step => {
  const [[identifier] = []] = model.identifiers
  const by: [string, unknown] = identifier === undefined ? ['pk', pk] : [identifier, name]
  return { id: undefined, model, state: 'absent', identifiers: new Map([by]), attrs: new Map(), path: [] }
}

/** A row in messages, as `rowName` has it. */
const nameOf = ({ model, name }: NamedRow): string => `${model.displayName} ${JSON.stringify(name)}`

/** The rows that the document names, as `table key`. */
export const rowsNamed = (findings: readonly Finding[]): ReadonlySet<string> =>
  new Set(
    findings.flatMap(({ step: { model }, row, isForeign }) =>
      row === undefined || isForeign ? [] : [`${model.table} ${row.pk}`],
    ),
  )

/** Of the rows that nothing has for its own any more, those that the submitter wants deleted: none that a document names. */
export function replacedOf(
  orphans: readonly Orphan[],
  findings: readonly Finding[],
  { replaceProvider }: Conditions,
): NamedRow[] {
  const named = rowsNamed(findings)
  return orphans.flatMap(({ row, isReplaced }) =>
    replaceProvider && isReplaced && !named.has(`${row.model.table} ${row.pk}`) ? [row] : [],
  )
}

/** @returns a line of the log for each row that was left without one that has it for its own, with the remedy */
export function orphanLines(orphans: readonly Orphan[], { mode, replaceProvider }: Conditions): string[] {
  const has = mode === 'plan' ? 'would have' : 'has'
  const lines = orphans.map(({ row, holder, isReplaced }) => {
    const remedy =
      isReplaced && !replaceProvider ? 'delete it, or send ?replace_provider=true next time' : 'delete it, or use it'
    return `${nameOf(row)} ${has} no ${holder} now: ${remedy}`
  })
  return limited(lines)
}

/** A row that was deleted, with the rows that had it for their own. */
export type Loss = { readonly name: string; readonly holder: Holder }

/** To be read before the deletion, which takes the row away from its holders. */
export async function lossesOf(reader: EngineReader, registry: Registry, finding: Finding): Promise<Loss[]> {
  const { step, action, row, label } = finding
  if (action !== 'delete' || row === undefined) return []
  const holders = await holdersOf(reader, registry, step.model.table, [row.pk])
  return holders.map((holder) => ({ name: `${step.model.displayName} ${JSON.stringify(label)}`, holder }))
}

/** @returns a line of the log for each row that lost what it had for its own, and is there without another */
export async function lossLines(
  reader: EngineReader,
  registry: Registry,
  losses: readonly Loss[],
  mode: Mode,
): Promise<string[]> {
  const [loses, has] = mode === 'plan' ? ['would lose', 'would have'] : ['lost', 'has']
  const left = await bereft(reader, registry, [...new Set(losses.map(({ holder }) => holder))])
  const lines = left.map(({ displayName, label, field, isLink, ...holder }) => {
    const name = losses.find((loss) => loss.holder.pk === holder.pk && loss.holder.held === holder.held)?.name
    const what = `${displayName} ${JSON.stringify(label)}`
    return isLink
      ? `${what} ${loses} ${name} from ${field}: send the field again with another, if it needs one`
      : `${what} ${has} no ${field} now, because ${name} is deleted: send it with another, or delete it`
  })
  return limited(lines)
}

/** An answer lists at most this many of a kind. */
const maxLines = 20

function limited(lines: readonly string[]): string[] {
  const more = lines.length - maxLines
  return [...lines.slice(0, maxLines), ...(more > 0 ? [`${more} more are not listed`] : [])]
}
