import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { reader } from '../../src/db/engine-tx.ts'
import { actAs, actorOfToken, actorOfUser } from '../../src/rights/actor.ts'
import { type Policy, policies } from '../../src/rights/policies.ts'
import { bench } from '../apply/engine.ts'
import { execute, sql } from '../support/kit.ts'
import { callerOf, everything, has, look, plain, type Seen } from './oracle.ts'
import { call, drawn, type Kind, kinds } from './random-calls.ts'
import { guess } from './random-guesses.ts'
import { type Key, operate, type Pick, type World, world } from './random-world.ts'
import { mayKnow, violations } from './violations.ts'

/**
 * Delegates call at random, with their own tokens or any in their hands, some while impersonating: they build, shrink,
 * move, rename and delete, make tokens and view keys, and guess. The roles of two of them are bound to owners. In between, the operator promotes users. An oracle judges each call.
 */

const there = await bench()
const { db } = there

/** `bound`: an application or a provider was written by a caller whose rights are bound to owners. */
const others = [
  'calls',
  'by key',
  'below a ceiling',
  'impersonating',
  'beyond',
  'bound',
  'guess hidden',
  'guess seen',
] as const
const names = [...kinds, ...others] as const
type Count = Record<(typeof names)[number], number>
const zero = () => Object.fromEntries(names.map((name) => [name, 0])) as Count

const perWorld = 100

type Options = {
  count?: Count
  seed?: number
  /** Happens before each call. */
  plant?: () => Promise<unknown>
  /** The kinds of the calls are drawn from these. */
  from?: readonly Kind[]
}

/** @throws at the first call that did what its caller may not do */
async function play(worlds: number, { count = zero(), seed, plant, from = drawn }: Options = {}): Promise<void> {
  const dice = fc.array(fc.array(fc.nat(9_999), { minLength: 24, maxLength: 24 }), {
    minLength: perWorld,
    maxLength: perWorld,
  })
  await fc.assert(
    fc.asyncProperty(dice, async (throws) => {
      const made = await world(db)
      const held = new Map(made.delegates.map(({ pk }) => [pk, new Set<string>()]))
      let seen = await look(db)
      for (const thrown of throws) {
        let die = 0
        const pick: Pick = (from) => {
          die += 1
          const [picked] = from.slice((thrown[die % thrown.length] ?? 0) % from.length)
          if (from.length === 0) expect.fail('nothing to pick from')
          return picked as (typeof from)[number]
        }
        if (pick([true, ...Array.from({ length: 11 }, () => false)])) {
          await operate(db, made, pick)
          seen = await look(db)
        }
        if (plant !== undefined) {
          await plant()
          seen = await look(db)
        }
        seen = await step(made, seen, pick, { count, held, from })
      }
    }),
    { numRuns: worlds, endOnFailure: true, ...(seed !== undefined && { seed }) },
  )
}

type Held = ReadonlyMap<number, Set<string>>
type Played = { readonly count: Count; readonly held: Held; readonly from: readonly Kind[] }

/** One call. @returns what the tables hold after it */
async function step(made: World, before: Seen, pick: Pick, { count, held, from }: Played): Promise<Seen> {
  judgeHands(made, before, held, count)
  const able = made.delegates.filter(
    ({ own: { token } }) => callerOf(before, { token, as: undefined })?.held.has(everything) === false,
  )
  // They deactivated or deleted each other, or joined what became a group of superusers: the operator comes soon.
  if (able.length === 0) return before
  const hands = pick(able)
  const key = pick([hands.own, pick([hands.own, ...hands.viewed.slice(-4)])])
  const as = pick([undefined, undefined, pick([...before.users.keys()]), pick(made.delegates).pk])
  const tried = await callers(before, key, as)
  const { actor, caller } = tried ?? (await callers(before, hands.own, undefined)) ?? expect.fail('unable')
  if (pick([true, ...Array.from({ length: 7 }, () => false)])) {
    count[await guess({ there, actor, seen: before, pick }, caller)] += 1
    return before
  }
  const kind = pick(from)
  const { outcome, what, told = '' } = await call(kind, { there, actor, seen: before, pick })
  // An application and its provider may have one name.
  const known = new Set([...before.objects.values()].filter((each) => mayKnow(each, caller)).map(({ name }) => name))
  for (const object of before.objects.values())
    if (!mayKnow(object, caller) && !known.has(object.name))
      expect(told, `${kind} by ${hands.pk}: ${JSON.stringify(what)}`).not.toContain(object.name)
  count.calls += 1
  if (outcome === 'refused') return before
  const after = await look(db)
  // It was so already.
  if (after.text === before.text) return before
  const found = violations(before, after, caller, typeof outcome === 'object' ? outcome.token : undefined)
  if (found.length > 0) expect.fail(`${found} after ${kind} by ${hands.pk} as ${actor.pk}: ${JSON.stringify(what)}`)
  if (typeof outcome === 'object') hands.viewed.push({ secret: outcome.key, token: outcome.token })
  // A stack without objects is filled first.
  count[kind === 'object prune' && after.objects.size >= before.objects.size ? 'submission' : kind] += 1
  if (tried !== null && key !== hands.own) count['by key'] += 1
  if (actor.ceiling !== undefined) count['below a ceiling'] += 1
  if (caller.isImpersonating) count.impersonating += 1
  if (kind.startsWith('object') && [...plain(caller.acting)].some((right) => right.includes('@'))) count.bound += 1
  return after
}

/** The caller as the product knows it, and as the oracle does: they must agree. null: it is not authenticated. */
async function callers(seen: Seen, { secret, token }: Key, as: number | undefined) {
  const [caller, actor] = [callerOf(seen, { token, as }), await authenticate(secret, as)]
  expect(actor === null, `whether ${token} is authenticated as ${as}`).toBe(caller === null)
  if (actor === null || caller === null) return null
  expect(actor.isSuperuser).toBe(caller.acting.has(everything))
  expect(new Set(actor.permissions)).toEqual(caller.acting.difference(new Set([everything])))
  return { actor, caller }
}

async function authenticate(secret: string, as: number | undefined) {
  const real = (await actorOfToken(reader(db), { secret }))?.actor ?? null
  if (real === null || as === undefined) return real
  const effective = await actorOfUser(reader(db), { pk: as })
  return effective && actAs(real, effective)
}

/** No key in the hands of a delegate ever carries more than that delegate has held. */
function judgeHands({ delegates }: World, { users, tokens }: Seen, held: Held, count: Count): void {
  for (const { pk, own, viewed } of delegates) {
    const ever = held.get(pk) ?? expect.fail('no delegate')
    for (const right of users.get(pk)?.rights ?? []) ever.add(right)
    for (const { token } of [own, ...viewed]) {
      const { carries, user } = tokens.get(token) ?? {}
      const more = [...(carries ?? [])].filter((right) => !has(ever, right) && !ever.has(everything))
      expect(more, `token ${token} in the hands of ${pk}`).toEqual([])
      if ([...(users.get(user ?? 0)?.rights ?? [])].some((right) => !has(ever, right))) count.beyond += 1
    }
  }
}

/** 20 000 calls: 10 000 with each kind of transactions. CI plays the same ones each time. */
const worlds = 50

test('no caller gains, gives or takes what the caller does not hold, and no superuser is lost', async () => {
  const count = zero()
  await play(worlds, { count })
  console.info(`accepted of ${count.calls} random calls: ${JSON.stringify(count)}`)
  // Nothing would have been shown without what was accepted.
  expect(count.calls).toBeGreaterThan(worlds * perWorld * 0.5)
  const least = Math.ceil(worlds / 20)
  for (const name of names) expect(count[name], name).toBeGreaterThanOrEqual(least)
}, 600_000)

describe('what is planted is found', () => {
  const seed = 7
  const failure = (played: Promise<void>) =>
    played.then(
      () => expect.fail('nothing was found'),
      (error: unknown) => String(error instanceof Error ? (error.cause ?? error) : error),
    )
  /** The policy without denials of this text. */
  const without = (whole: Policy, denied: RegExp): Policy => ({
    ...whole,
    *denials(change, holdings, reporter) {
      for (const denial of whole.denials(change, holdings, reporter)) if (!denied.test(denial ?? '')) yield denial
    },
  })

  test.each([
    ['service_core.group', /^the group has/, 'group change', /lost|has other attributes/],
    ['service_core.group', /^its new parent has/, 'group move', 'gained'],
    ['service_core.group', /^the role has/, 'group roles', 'gained'],
    ['service_core.group', /^one of the users has/, 'group members', 'was moved'],
    ['service_core.group', /add_user_to_group is missing/, 'group create', 'without add_user_to_group'],
    ['service_core.group', /assign_role is missing/, 'group roles', 'without assign_role'],
    ['service_core.group', /able_group_superuser is missing/, 'group flag', 'flagged without'],
    ['service_core.group', /only a superuser/, 'group flag', 'the superusers are others'],
    ['service_core.user', /^that user has/, 'user change', 'who has more'],
    ['service_core.user', /^the group has/, 'user groups', 'gained'],
    ['service_core.user', /add_user_to_group is missing/, 'user groups', 'without add_user_to_group'],
    ['service_rbac.role', /^the role has/, 'role change', 'lost'],
    ['service_rbac.role', /assign_role is missing/, 'role change', 'without assign_role'],
    ['service_core.token', /^its user has/, 'token change', 'has more'],
    ['service_core.token', /does not expire/, 'token of self', 'no longer expires'],
  ] as const)(
    'where the policy of %s denies nothing by %s',
    async (model, denied, often, what) => {
      const whole = policies[model] ?? expect.fail('no policy')
      Object.assign(policies, { [model]: without(whole, denied) })
      onTestFinished(() => {
        Object.assign(policies, { [model]: whole })
      })
      // Every second call may make the mistake: else one that is rare is found after thirty worlds.
      const from = drawn.flatMap((each) => [each, often])
      expect(await failure(play(300, { seed, from }))).toMatch(what)
    },
    600_000,
  )

  test('where a ceiling is lifted', async () => {
    const plant = () => execute(db, sql`UPDATE tokens SET ceiling = NULL WHERE ceiling IS NOT NULL`)
    expect(await failure(play(10, { seed, plant }))).toContain('in the hands of')
  })

  test.each([
    ['the superusers are others', sql`UPDATE groups SET is_superuser = false`],
    ['the superusers are others', sql`UPDATE tokens SET expiring = true, expires = now() - interval '1 s'`],
    ['the superusers are others', sql`UPDATE tokens SET ceiling = '["view_user"]' WHERE ceiling IS NULL`],
    ['gained or lost', sql`UPDATE users SET is_active = NOT is_active`],
    ['gained or lost', sql`DELETE FROM memberships`],
    ['was changed', sql`UPDATE users SET email = 'x@example.com'`],
    ['was changed', sql`UPDATE users SET name = 'Planted'`],
    ['was changed', sql`UPDATE users SET path = 'planted'`],
    ['was changed', sql`UPDATE users SET type = 'external'`],
    ['has other attributes', sql`UPDATE groups SET attributes = '{"a": 1}'`],
    ['lost its name', sql`UPDATE groups SET name = 'other ' || name`],
    ['lost its name', sql`UPDATE roles SET name = 'other ' || name`],
    ['has another user or intent', sql`UPDATE tokens SET user_pk = (SELECT max(pk) FROM users)`],
    ['has another user or intent', sql`UPDATE tokens SET intent = 'recovery'`],
    ['was raised', sql`UPDATE tokens SET ceiling = ceiling || '["view_role"]' WHERE ceiling IS NOT NULL`],
    ['the user of token', sql`DELETE FROM tokens WHERE ceiling IS NULL`],
    [
      'has no ceiling',
      sql`INSERT INTO tokens (pk, identifier, user_pk, expiring, key_hash)
      SELECT gen_random_uuid(), 'planted', min(pk), false, 'x' FROM users WHERE pk > (SELECT min(pk) FROM users)`,
    ],
    ['application', sql`INSERT INTO applications (pk, name, slug) VALUES (gen_random_uuid(), 'planted', 'planted')`],
  ])('as %s, by a statement between two calls', (what, statement) => planted(what, statement, 0))

  test.each([
    ['without change_application for team-two', sql`UPDATE applications SET group_name = 'x' WHERE owner = 'team-two'`],
    [
      'without change_application for team-two',
      sql`UPDATE applications SET owner = 'team-two' WHERE owner = 'team-one'`,
    ],
    ['without change_scimprovider for rows without an owner', sql`UPDATE providers SET owner = NULL`],
    ['without delete_scimprovider for team-three', sql`DELETE FROM providers WHERE owner = 'team-three'`],
    [
      'without add_application for rows without an owner',
      sql`INSERT INTO applications (pk, name, slug) VALUES (gen_random_uuid(), 'planted', 'planted')`,
    ],
    [
      'was taken without change_scimprovider for team-two',
      sql`INSERT INTO backchannel_providers (application_pk, provider_pk) SELECT a.pk, p.pk FROM
        (SELECT pk FROM applications WHERE owner = 'team-one' LIMIT 1) a, (SELECT pk FROM providers p
          WHERE owner = 'team-two' AND NOT EXISTS (SELECT FROM backchannel_providers WHERE provider_pk = p.pk)) p`,
    ],
    ['has others without change_application for team-two', sql`DELETE FROM backchannel_providers`],
    ['gained or lost: ', sql`UPDATE roles SET owners = '{}'`],
    ['gained or lost: ', sql`UPDATE roles SET owners = '{team-one}' WHERE owners = '{}'`],
  ])('as written %s, by a caller of team one', (what, statement) => planted(what, statement, 1))

  async function planted(what: string, statement: ReturnType<typeof sql>, by: number): Promise<void> {
    const { delegates } = await world(db)
    const { own } = delegates[by] ?? expect.fail('no delegate')
    const before = await look(db)
    const caller = callerOf(before, { token: own.token, as: undefined }) ?? expect.fail('no caller')
    expect(violations(before, await look(db), caller)).toEqual([])
    await execute(db, statement)
    expect(violations(before, await look(db), caller).join('\n')).toContain(what)
  }
})
