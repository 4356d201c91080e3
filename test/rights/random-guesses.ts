import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { Find } from '../../src/document/document.ts'
import type { Actor } from '../../src/permissions.ts'
import type { Bench } from '../apply/engine.ts'
import { type Caller, everything, has, type Seen } from './oracle.ts'
import { groupEntry } from './people.ts'
import type { Pick } from './random-world.ts'

/** A guess: a document that looks a row up, by a value that it has and by one that no row has. */

type Context = { readonly there: Bench; readonly actor: Actor; readonly seen: Seen; readonly pick: Pick }

/** A row, what finds it, and the right that a caller needs to view it. */
type Target = {
  readonly model: string
  readonly by: Readonly<Record<string, unknown>>
  readonly wrong: Readonly<Record<string, unknown>>
  readonly view: string
}

function targetOf({ users, groups, roles, tokens, objects }: Seen, { user: self }: Caller, pick: Pick): Target {
  const [none, number] = [randomUUID(), 2_000_000_000]
  const target = (name: string, view: string, field: string, value: unknown): Target => ({
    ...{ model: name, view, by: { [field]: value } },
    wrong: { [field]: typeof value === 'number' ? number : none },
  })
  const others = [...users].filter(([pk]) => pk !== self)
  const all = [
    ...others.flatMap(([pk, { username }]) => [
      target('service_core.user', 'view_user', 'username', username),
      target('service_core.user', 'view_user', 'pk', pk),
    ]),
    ...[...groups].map(([name]) => target('service_core.group', 'view_group', 'name', name)),
    ...[...roles].map(([name]) => target('service_rbac.role', 'view_role', 'name', name)),
    ...[...tokens.values()].map(({ pk }) => target('service_core.token', 'view_token', 'pk', pk)),
  ]
  const owned = [...objects.values()].map(({ resource, key, owner }) => {
    const view = `view_${resource}${owner === null ? '' : `@${owner}`}`
    const model = resource === 'application' ? 'service_core.application' : 'service_providers_scim.scimprovider'
    return target(model, view, 'pk', resource === 'application' ? key : Number(key))
  })
  return pick(owned.length > 0 && pick([true, false]) ? owned : all)
}

/**
 * The answers to a right and to a wrong guess are the same, unless the caller may view the row.
 *
 * @returns whether they were, for a caller who is let in
 */
export async function guess(
  { there, actor, seen, pick }: Context,
  caller: Caller,
): Promise<'guess hidden' | 'guess seen'> {
  const { model, by, wrong, view } = targetOf(seen, caller, pick)
  const group = randomUUID()
  const answerTo = async (identifiers: Readonly<Record<string, unknown>>) => {
    const entry = { ...groupEntry(null), identifiers: { name: group }, conditions: [new Find(model, identifiers)] }
    const checked = there.check([entry], actor).then((found) => `${found.length} entries`)
    return checked.catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
  }
  const mayView = caller.acting.has(everything) || has(caller.acting, view)
  const [right, missed] = [await answerTo(by), await answerTo(wrong)]
  if (!mayView) expect(right, `${actor.pk} looks up ${model} ${JSON.stringify(by)}`).toBe(missed)
  return right === missed ? 'guess hidden' : 'guess seen'
}
