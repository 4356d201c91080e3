import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { answered, dashboardOf, installation, type Made, textOf } from '../support/kit.ts'

/** The page of a run: when what happened, what it changed, and what it offers. */

let name: string
const groups = ['view_group', 'add_group', 'change_group']
const service = await installation()
const dashboard = dashboardOf(service)
const operator = await service.make.user({ permissions: ['view_queue', 'view_run', 'roll_back_run', ...groups] })
beforeEach(() => {
  name = `n-${randomUUID().slice(0, 8)}`
})

async function get(as: Made, url: string) {
  const answer = await dashboard.get(as, url)
  expect(answer.statusCode, url).toBe(200)
  return answer.body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ')
}

/** @returns the id of the run */
async function set(places: readonly number[], text: string, as: Pick<Made, 'put'> = service.admin, query = '') {
  const entries = places.map((place) => ({
    ...{ model: 'service_core.group', identifiers: { name: `${name}-${place}` }, attrs: { attributes: { text } } },
  }))
  const answer = await answered(200, as.put(`/api/v3/blueprints/${query}`, { version: 1, metadata: { name }, entries }))
  return answer.runId
}
const upTo = (last: number) => Array.from({ length: last }, (_, each) => each + 1)

describe('the page of a run offers', () => {
  const offer = async (run: string) =>
    /Plan again or roll back to this|Plan it again/.exec(await get(operator, `/admin/runs/${run}/`))?.[0]

  test('to roll back to what was applied, and only to plan again what was not', async () => {
    const run = await set([1], 'first')
    expect(await offer(run)).toBe('Plan again or roll back to this')
    expect(await offer(await set([1], 'second', service.admin, '?dry_run=true'))).toBe('Plan it again')
    for (const state of ['failed', 'cancelled', 'done'] as const) {
      const other = await set([1], state)
      await service.db.run.update({ where: { id: other }, data: { state, applied: false } })
      expect([state, await offer(other)]).toEqual([state, 'Plan it again'])
    }
  })
})

describe('what a run changed', () => {
  const shown = async (run: string) => (await dashboard.get(operator, `/admin/runs/${run}/`)).body
  const uris = (...paths: readonly string[]) =>
    paths.map((path) => ({ matching_mode: 'strict', url: `https://eu-central-1.example.com/${path}` }))

  test('is one line for each of many objects, of which the first are open, and the page counts the others', async () => {
    const body = await shown(await set(upTo(121), 'first'))
    expect(body.match(/<details class="object" id="object-\d+"( open)?>/g)).toHaveLength(50)
    expect(body.match(/<details class="object" id="object-\d+" open>/g)).toHaveLength(3)
    expect(body).toContain('71 more of 121')
    const next = await dashboard.get(operator, /href="([^"]+)">The next ones/.exec(body)?.[1] ?? '')
    expect(next.body).toContain('id="object-50"')
  })

  test('leads from each object to the runs that changed it', async () => {
    const runs = [await set([1, 2], 'first'), await set([1], 'second'), await set([2], 'third')]
    const links = [...(await shown(runs[0] ?? '')).matchAll(/<a href="([^"]+)">its runs</g)]
    const found = await Promise.all(
      links.map(async ([, url = '']) => {
        const { body } = await dashboard.get(operator, url.replaceAll('&amp;', '&'))
        return runs.filter((run) => body.includes(`id="run-${run}"`))
      }),
    )
    expect(found).toEqual([
      [runs[0], runs[1]],
      [runs[0], runs[2]],
    ])
  })

  test('of a new object is what is not a default; of a list, each item that came or went', async () => {
    const sent = (...paths: readonly string[]) => ({ provider: { redirect_uris: uris(...paths) } })
    const run = async (...paths: readonly string[]) =>
      textOf(await shown((await answered(200, service.admin.submit('oauth2', name, sent(...paths)))).runId))
    const created = await run('a', 'b')
    expect(created).toMatch(/redirect_uris: url: https:\/\/eu-central-1\.example\.com\/a, matching_mode: strict url: /)
    expect(created).toMatch(/client_secret: a secret .*and \d+ defaults its runs application/)
    for (const usual of ['issuer_mode', 'include_claims_in_id_token', 'policy_engine_mode'])
      expect(created).not.toContain(usual)
    const changed = await run('b', 'c')
    expect(changed).toMatch(
      /redirect_uris: - url: https:\/\/\S+\/a, matching_mode: strict \+ url: https:\/\/\S+\/c, matching_mode: strict /,
    )
    expect(changed).not.toContain('client_secret')
    for (const text of [created, changed]) expect(text).not.toMatch(/[[{]"|"[\]}]/)
  })
})

test('what happened is in one line of time, with the attempts that failed', async () => {
  const run = await set([1], 'first')
  await service.db.runAttempt.createMany({
    data: Array.from({ length: 22 }, (_, each) => ({
      runId: run,
      attempt: each + 1,
      cause: `cause ${each + 1} of it`,
    })),
  })
  await service.db.run.update({ where: { id: run }, data: { attempts: 23 } })
  expect(await get(operator, `/admin/runs/${run}/`)).toMatch(
    /What happened .*Submitted by admin, and enqueued 23 times .*Taken by a worker, after .* in the queue Before 2 more attempts that failed, in the API .*Attempt 3 failed: cause 3 of it .*Attempt 22 failed: cause 22 of it .*Ended: applied, after .* of work/,
  )
})
