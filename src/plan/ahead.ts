import type { Registry } from '../models/registry.ts'
import type { Step } from './compile.ts'
import type { Loader } from './load.ts'
import type { LinkLook, Look } from './look.ts'
import { ownLooks, renameLooks, rowLooks, valueLooks } from './looks.ts'
import type { Resolver } from './resolve.ts'

/** The entries whose rows are loaded at once. */
export const mostAhead = 500

/** The most rounds: the rows of one may be the arguments of look-ups in the next. What is left is loaded at its entry's turn. */
const mostRounds = 4

type Use = {
  /** Whether keys of new rows are drawn: only for a document that will be written. */
  readonly takesKeys: boolean
  /** Whether links that may be very many are read where no entry needs them. */
  readonly readsAll: boolean
}

/**
 * Loads the rows of entries before their turn, as far as the entries name them by known values: one statement a round. Nearly every
 * document is an application and its provider, which take one round.
 */
export async function loadAhead(
  loader: Loader,
  registry: Registry,
  resolver: Resolver,
  steps: readonly Step[],
  { takesKeys, readsAll }: Use,
): Promise<void> {
  const { world } = loader
  const drawn = new Set<Step>()
  for (let round = 0; round < mostRounds; round += 1) {
    const looks: Look[] = []
    const links: LinkLook[] = []
    const newKeys: Look[] = []
    for (const step of steps) {
      const { model, state } = step
      looks.push(...renameLooks(step), ...(await resolver.lookUps(step)).flatMap((each) => each.looks))
      const identifiers = resolver.knownFields(step, step.identifiers)
      if (identifiers.size < step.identifiers.size) continue
      const values = new Map(
        [...identifiers, ...resolver.knownFields(step, step.attrs)].filter(([name]) => name !== 'pk'),
      )
      const own = ownLooks(step, identifiers)
      const [first] = own
      const [row] = first !== undefined && world.knows(first) ? world.find(first) : []
      looks.push(...own, ...valueLooks(registry, model, values, row))
      if (first === undefined) continue
      if (takesKeys && model.key === 'integer' && state !== 'absent' && !drawn.has(step)) {
        drawn.add(step)
        newKeys.push(first)
      }
      if (row === undefined) continue
      const ofRow = rowLooks(registry, step, values, row, readsAll)
      links.push(...ofRow.links)
      looks.push(...ofRow.looks)
    }
    if (!(await loader.load({ looks, links, newKeys }))) return
  }
}
