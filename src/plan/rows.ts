import type { ErrorList } from '../errors.ts'
import type { Loader } from './load.ts'
import type { LinkLook, Look } from './look.ts'
import { ownLooks, questionsOf, renameLooks } from './looks.ts'
import type { Resolved, Resolver } from './resolve.ts'
import type { Row } from './statements.ts'
import type { Step } from './step.ts'
import type { World } from './world.ts'

/** Loads the rows of entries: of many before their turn, and of one at its turn. */

/** An entry with its rows, while it is checked. */
export type Entry = {
  readonly loader: Loader
  /** That of the loader. */
  readonly world: World
  readonly resolver: Resolver
  readonly errors: ErrorList
  readonly step: Step
  /** The row that its identifiers find. */
  readonly row: Row | undefined
  /** Its fields with keys instead of references, and those that result from them for this row. */
  readonly values: ReadonlyMap<string, unknown>
  readonly sent: ReadonlyMap<string, unknown>
}

export type Use = {
  /** Whether keys of new rows are drawn: only for a document that will be written. */
  readonly takesKeys: boolean
  /** True for a plan, and for the apply of a reviewed one: a row that the caller may not view is not compared. */
  readonly isReviewed: boolean
}

/** The entries whose rows are loaded at once. */
export const mostAhead = 500

/** The most rounds: the rows of one may be the arguments of look-ups in the next. What is left is loaded at its entry's turn. */
const mostRounds = 4

/**
 * Loads the rows of entries before their turn, as far as the entries name them by known values: one statement a round. Nearly every
 * document is an application and its provider, which take one round.
 */
export async function loadAhead(
  loader: Loader,
  resolver: Resolver,
  steps: readonly Step[],
  { takesKeys, isReviewed }: Use,
): Promise<void> {
  const drawn = new Set<Step>()
  for (let round = 0; round < mostRounds; round += 1) {
    const looks: Look[] = []
    const links: LinkLook[] = []
    const newKeys: Look[] = []
    for (const step of steps) {
      const fields = await resolver.ahead(step)
      looks.push(...renameLooks(step), ...fields.looks)
      if ([...fields.identifiers.values()].includes(undefined)) continue
      const asked = questionsOf(loader.world, step, fields, isReviewed)
      looks.push(...asked.looks)
      links.push(...asked.links)
      const [first] = ownLooks(step, fields.identifiers)
      if (first === undefined || !takesKeys || step.model.key !== 'integer' || step.state === 'absent') continue
      if (!drawn.has(step)) newKeys.push(first)
      drawn.add(step)
    }
    if (!(await loader.load({ looks, links, newKeys }))) return
  }
}

/**
 * Loads all rows that concern the entry: those that its values name, and then those that its own row needs.
 *
 * @returns the rows that the identifiers find, two at most: more than one is an error
 */
export async function readRows(
  loader: Loader,
  step: Step,
  fields: Resolved,
  readsAll: boolean,
): Promise<readonly Row[]> {
  const { world } = loader
  const ask = () => questionsOf(world, step, fields, readsAll)
  while (await loader.load(ask())) {}
  const { rows, links } = ask()
  const [row, another] = rows
  if (row === undefined || another !== undefined) return rows
  const { links: linked = {}, ...now } = world.row(step.model.table, row.pk) ?? row
  // Links that may be very many, and that the entry does not need, are left out: they are kept.
  const needed = [...step.model.fields.values()].flatMap(
    ({ name, storage }): [string, readonly (string | number)[]][] => {
      const keys = linked[name]
      const look = links.find((each) => each.name === name)
      if (keys === undefined || storage.in !== 'link' || (storage.many === true && look === undefined)) return []
      return [[name, look?.among === undefined ? keys : keys.filter((key) => look.among?.includes(key))]]
    },
  )
  return [{ ...now, links: Object.fromEntries(needed) }]
}
