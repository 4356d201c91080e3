import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { until, within } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put, type Sent, submission } from './clients.ts'
import { onBothQueues, openStand, type Stand } from './stand.ts'

/** PostgreSQL answers reads, and refuses every write: it is read-only, or its disk is full. */

type Fault = { readonly name: string; begin(stand: Stand): Promise<void>; end(stand: Stand): Promise<void> }

const statements =
  (...texts: string[]) =>
  ({ databaseUrl }: Stand) =>
    within(databaseUrl, async (client) => {
      for (const text of texts) await client.query(text)
    })

const faults: readonly Fault[] = [
  {
    name: 'read-only',
    begin: statements('ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()'),
    end: statements('ALTER SYSTEM RESET default_transaction_read_only', 'SELECT pg_reload_conf()'),
  },
  {
    name: 'out of disk',
    begin: statements(
      `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$`,
      ...['runs', 'applications', 'groups', 'audit_rows'].map(
        (table) =>
          `CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION full_disk()`,
      ),
    ),
    end: statements('DROP FUNCTION full_disk CASCADE'),
  },
]

const send = ({ url, token }: Stand, method: string, path: string, body: unknown) =>
  fetch(`${url}/api/v3${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

/** Lines of errors with a stack. */
const stacks = (output: string) => output.split('\n').filter((line) => line.includes('"stack":'))

onBothQueues((kind) => {
  describe.each(faults)('$name', ({ begin, end }) => {
    test('while a run waits: 202, and it is applied later; a new one is 503 `cancelled`; other writes are 503', {
      timeout: 120_000,
    }, async () => {
      const stand = await openStand(kind, { applyWaitMs: 1_500 })
      const waiting = put(stand, 'waiting')
      await until('the run to be recorded', async () => (await stand.db.run.count()) === 1)
      await begin(stand)
      const path = '/core/transactional/applications/'
      const refused = await send(stand, 'PUT', path, submission('refused', 'refused'))
      expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toEqual([
        503,
        '5',
        expect.objectContaining({ code: 'cancelled', detail: expect.stringContaining('accepts no changes') }),
      ])
      const group = await send(stand, 'POST', '/core/groups/', { name: 'new' })
      expect([group.status, group.headers.get('retry-after')]).toEqual([503, '5'])
      const sent = await waiting
      expect([sent.status, JSON.parse(sent.text).code]).toEqual([202, 'outcome_unknown'])
      expect(stacks(stand.api.output())).toEqual([])
      await end(stand)
      const worker = await stand.startWorker()
      const log: Sent[] = [sent, await put(stand, 'afterwards')]
      expect(log.at(-1)?.status).toBe(200)
      expect(await audit(stand.db, log)).toEqual([])
      expect(await stand.db.run.count({ where: { state: 'done', applied: true } })).toBe(2)
      await worker.stop()
    })
  })
})

test.each(faults)(
  '$name under load: never 500, no run fails, and service as before afterwards',
  { timeout: 120_000 },
  async ({ name, begin, end }) => {
    const stand = await openStand('postgres', { applyWaitMs: 3_000 })
    const worker = await stand.startWorker()
    let over = false
    const sending = crowd(stand, 6, 'loaded', () => over)
    await delay(500)
    await begin(stand)
    // All clients of the crowd may have a run that waits, and send nothing meanwhile.
    const meanwhile: Sent[] = []
    const isRefused = async () => {
      meanwhile.push(await put(stand, `meanwhile-${meanwhile.length}`))
      return meanwhile.at(-1)?.status === 503
    }
    await until('a submission to be refused', isRefused)
    await delay(1_500)
    await end(stand)
    await delay(2_000)
    over = true
    const log = [...meanwhile, ...(await sending)]
    console.log(`${name}: ${describeTimes(log)}`)
    const statuses = new Set(log.map(({ status }) => status))
    expect(statuses.difference(new Set([200, 202, 503]))).toEqual(new Set())
    log.push(await put(stand, 'afterwards'))
    expect(log.at(-1)?.status).toBe(200)
    expect(await audit(stand.db, log)).toEqual([])
    expect(await stand.db.run.count({ where: { state: 'failed' } })).toBe(0)
    await worker.stop()
  },
)
