import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { until, within } from '../support/kit.ts'
import { put, submission, type Target } from './clients.ts'
import { onBothQueues, openStand, type Stand } from './stand.ts'

/** PostgreSQL crashes right after a run was recorded: it is there, or its client learns that it is lost. */

const oneJobWaits = 'gatewright_jobs{state="waiting"} 1'

onBothQueues((kind) => {
  describe('a run that the crash lost', { timeout: 120_000 }, () => {
    test('is refused when PostgreSQL is back, before the wait ends', async () => {
      const { stand, sending } = await recordedAndCrashed()
      await stand.postgres.start()
      const backAt = performance.now()
      expect(await stand.db.run.count()).toBe(0)
      const { status, text } = await sending
      expect({ status, body: JSON.parse(text) }).toMatchObject({
        status: 503,
        body: { code: 'cancelled', detail: expect.stringContaining('the database crashed and lost it') },
      })
      expect(performance.now() - backAt).toBeLessThan(3_000)
    })

    test('is unknown when the wait ends first, and the answer says where the outcome will be', async () => {
      const { stand, sending } = await recordedAndCrashed({ applyWaitMs: 3_000 })
      const { status, text } = await sending
      const { detail } = JSON.parse(text)
      const [, path] = /stands at (\S+); if nothing is there, nothing was applied\.$/.exec(detail) ?? []
      expect([status, path]).toEqual([202, expect.stringContaining('/blueprints/runs/')])
      await stand.postgres.start()
      const headers = { authorization: `Bearer ${stand.token}` }
      expect((await fetch(`${stand.url}${path}`, { headers })).status).toBe(404)
    })
  })

  const crashes = 5

  test(`a run with a 202 of respond-async survives ${crashes} crashes, each right after it`, {
    timeout: 120_000,
  }, async () => {
    const stand = await openStand(kind)
    const runs: string[] = []
    for (let crash = 1; crash <= crashes; crash += 1) {
      await writeLate(stand)
      const slug = `acknowledged-${crash}`
      let answer = await putAsync(stand, slug)
      // The API finds its connections closed after each crash.
      while (answer.status === 503) answer = await putAsync(stand, slug)
      expect(answer.status).toBe(202)
      runs.push(answer.headers.get('location')?.split('/').at(-2) ?? '')
      await delay((crash - 1) * (300 / crashes))
      await stand.postgres.stop('immediate')
      await stand.postgres.start()
    }
    await until(
      'all acknowledged runs to be there',
      async () => (await stand.db.run.count({ where: { id: { in: runs } } }).catch(() => 0)) === crashes,
    )
    await stand.startWorker()
    await until(
      'all acknowledged runs to be applied',
      async () => (await stand.db.run.count({ where: { id: { in: runs }, applied: true } })) === crashes,
      { withinMs: 30_000 },
    )
  })

  const putAsync = ({ url, token }: Target, slug: string) =>
    fetch(`${url}/api/v3/core/transactional/applications/`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', prefer: 'respond-async' },
      body: JSON.stringify(submission(slug, slug)),
    })

  /** Commits that do not wait for the disk are written after a long time. */
  const writeLate = ({ databaseUrl }: Stand) =>
    within(databaseUrl, async (client) => {
      await client.query("ALTER SYSTEM SET wal_writer_delay = '10s'")
      await client.query('SELECT pg_reload_conf()')
      // A full page of the log is written at once: this starts an empty one.
      await client.query('SELECT pg_switch_wal()')
    })

  /** A submission that no worker takes: it is recorded and enqueued, and not on the disk yet. */
  async function recordedAndCrashed(options?: { applyWaitMs: number }) {
    const stand = await openStand(kind, options)
    await writeLate(stand)
    const sending = put(stand, 'taken-away')
    await until('its job to wait', async () =>
      (await (await fetch(`${stand.url}/-/metrics/`)).text()).includes(oneJobWaits),
    )
    await stand.postgres.stop('immediate')
    return { stand, sending }
  }
})
