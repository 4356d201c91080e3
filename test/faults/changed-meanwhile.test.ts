import { beforeAll, describe, expect, test } from 'vitest'
import { askAs, execute, makers, rows, sql, until } from '../support/kit.ts'
import { submission, type Target } from './clients.ts'
import { recordCalls } from './record.ts'
import { applyPath, type Got, isApplied, runOf, send } from './requests.ts'
import { onBothQueues, openStand, type Stand, untilQueued } from './stand.ts'

/** Rights and owners that change while a run waits: what counts is what holds when a worker applies it. */

const deploys = [
  ...['application', 'oauth2provider'].flatMap((each) =>
    ['view', 'add', 'change'].map((action) => `${action}_${each}`),
  ),
  ...['view_flow', 'view_propertymapping', 'view_certificatekeypair'],
]

type Deployer = Target & { readonly pk: number; readonly group: string; readonly role: string }

const inject = () => expect.fail('requests go to the process')
const make = ({ db }: Stand) => makers(db, (token) => askAs({ inject }, token))

/** A user with a role that is bound to team-one. */
async function deployer(stand: Stand): Promise<Deployer> {
  const { pk, group, token } = await make(stand).user({ permissions: deploys, owners: ['team-one'] })
  const { rolePk: role } = await stand.db.groupRole.findFirstOrThrow({ where: { groupPk: group } })
  return { url: stand.url, token, pk, group, role }
}

/** A token of the same user that is bound to team-one. */
async function bound(user: Deployer): Promise<Deployer> {
  const identifier = `bound-${user.pk}`
  const made = await send(user, 'POST', '/core/tokens/', { body: { identifier, owners: ['team-one'] } })
  expect(made.status, made.text).toBe(201)
  const key = await send(user, 'GET', `/core/tokens/${identifier}/view_key/`)
  return { ...user, token: JSON.parse(key.text).key }
}

const put = (by: Target, slug: string, owner: string, headers: Record<string, string> = {}, query = '') =>
  send(by, 'PUT', `${applyPath}${query}`, {
    headers: { 'gatewright-owner': owner, ...headers },
    body: submission(slug, `by ${owner}`),
  })
const putAsync = (by: Target, slug: string, owner = 'team-one') => put(by, slug, owner, { prefer: 'respond-async' })

/** What happens to the submitter while the run waits. */
const losses: Readonly<Record<string, (stand: Stand, user: Deployer) => Promise<unknown>>> = {
  'leaves the group': async (stand, { group }) => {
    const left = await send(stand, 'PATCH', `/core/groups/${group}/`, { body: { users: [] } })
    expect(left.status, left.text).toBe(200)
  },
  'has a group that loses the role': (stand, { group }) =>
    send(stand, 'PATCH', `/core/groups/${group}/`, { body: { roles: [] } }),
  'has a role that loses its permissions': ({ db }, { role }) =>
    execute(db, sql`UPDATE roles SET permissions = '{view_flow}' WHERE pk::text = ${role}`),
  'has a role that is bound to another owner': ({ db }, { role }) =>
    execute(db, sql`UPDATE roles SET owners = '{team-two}' WHERE pk::text = ${role}`),
  'is deactivated': ({ db }, { pk }) => execute(db, sql`UPDATE users SET is_active = false WHERE pk = ${pk}`),
}

const stateOf = async ({ db }: Stand, id: string) => {
  const { state, applied, reason } = await db.run.findUniqueOrThrow({ where: { id } })
  return { state, applied, reason }
}
const ended = (stand: Stand) =>
  until('all runs to end', async () => (await stand.db.run.count({ where: { state: 'queued' } })) === 0, {
    withinMs: 30_000,
  })
const slugs = async ({ db }: Stand) =>
  (await db.application.findMany({ orderBy: { slug: 'asc' } })).map(({ slug }) => slug)

onBothQueues((kind) => {
  let stand: Stand
  beforeAll(async () => {
    stand = await openStand(kind, { applyWaitMs: 20_000 })
  })

  test('rights that are taken away while a run waits: it is refused, and nothing of it is written', {
    timeout: 90_000,
  }, async () => {
    const got: Got[] = []
    const submit = async (by: Target, slug: string) => {
      const answer = await putAsync(by, slug)
      expect(answer.status, answer.text).toBe(202)
      got.push(answer)
      return runOf(answer)
    }
    const lost: [string, string][] = []
    for (const [index, [what, lose]] of Object.entries(losses).entries()) {
      const user = await deployer(stand)
      lost.push([what, await submit(user, `lost-${index}`)])
      lost.push([`${what}, with a bound token`, await submit(await bound(user), `lost-bound-${index}`)])
      await lose(stand, user)
    }
    const [keeps, unbound] = [await deployer(stand), await deployer(stand)]
    const kept = await submit(keeps, 'kept')
    const token = await bound(unbound)
    const still = await submit(token, 'still')
    await execute(stand.db, sql`UPDATE roles SET owners = '{}' WHERE pk::text = ${unbound.role}`)

    const worker = await stand.startWorker()
    await ended(stand)
    for (const [what, id] of lost)
      expect([what, await stateOf(stand, id)]).toEqual([
        what,
        { state: 'done', applied: false, reason: 'permission_denied' },
      ])
    for (const id of [kept, still]) expect(await stateOf(stand, id)).toMatchObject({ state: 'done', applied: true })
    // The token keeps its owner, although the role has none any more.
    const other = await put(token, 'other', 'team-two')
    expect([other.status, await stand.db.run.count({ where: { slug: 'other' } })]).toEqual([403, 0])
    recordCalls([...got, other])
    expect(await slugs(stand)).toEqual(['kept', 'still'])
    expect(await stand.db.provider.count()).toBe(2)
    await worker.stop()
  })

  describe('an owner that changes under a reviewed plan', () => {
    const all = ({ db }: Stand) =>
      rows(
        db,
        sql`SELECT xmin::text AS version, a::text AS row FROM applications a UNION ALL
          SELECT xmin::text, p::text FROM providers p ORDER BY 2`,
      )

    test('is 412, and nothing is written: before the apply, and while it waits', { timeout: 120_000 }, async () => {
      const first = await stand.startWorker({ WORKER_CONCURRENCY: '1' })
      for (const slug of ['before', 'waiting']) expect(isApplied(await put(stand, slug, 'team-one'))).toBe(true)
      const change = (slug: string, owner: string, headers = {}, query = '') =>
        send(stand, 'PUT', `${applyPath}${query}`, {
          headers: { 'gatewright-owner': owner, 'gatewright-allow': 'takeover', ...headers },
          body: submission(slug, `changed by ${owner}`),
        })
      const planned = async (slug: string) => {
        const plan = await change(slug, 'team-one', {}, '?dry_run=true')
        return { 'if-match': plan.headers.get('etag') ?? expect.fail(plan.text) }
      }
      const [beforeTag, waitingTag] = [await planned('before'), await planned('waiting')]
      const got = [await change('before', 'team-two')]
      const there = await all(stand)
      const refused = await change('before', 'team-one', beforeTag)
      expect([refused.status, await all(stand)]).toEqual([412, there])

      // The worker gets the takeover first. Of another submitter, so that both are in one lane.
      await first.stop()
      const { token } = await make(stand).user({ superuser: true })
      const taking = send({ url: stand.url, token }, 'PUT', applyPath, {
        headers: { 'gatewright-owner': 'team-two', 'gatewright-allow': 'takeover', prefer: 'respond-async' },
        body: submission('waiting', 'changed by team-two'),
      })
      expect((await taking).status).toBe(202)
      const applying = change('waiting', 'team-one', waitingTag)
      await untilQueued(stand, 2)
      const second = await stand.startWorker({ WORKER_CONCURRENCY: '1' })
      const late = await applying
      expect(late.status, late.text).toBe(412)
      got.push(refused, late)
      recordCalls(got)
      const { owner, metaDescription } = await stand.db.application.findUniqueOrThrow({ where: { slug: 'waiting' } })
      expect([owner, metaDescription]).toEqual(['team-two', 'changed by team-two'])
      await second.stop()
    })
  })
})
