import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { check } from '../../src/apply/check.ts'
import { type EngineReader, reader } from '../../src/db/engine-tx.ts'
import { uuid7 } from '../../src/ids.ts'
import { system } from '../../src/permissions.ts'
import { compile } from '../../src/plan/compile.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { held } from '../runs/stand.ts'
import { type Answer, type Asker, answered } from '../support/asker.ts'
import { aGroup, anApplication, installation, rows, sql, statementsOf, until } from '../support/kit.ts'

/** What one caller sends costs no more than it may, and ends with its request. */

const on = await installation({ limits: { rateLimitWaitingRuns: 1 } })

const url = '/api/v3/blueprints/'
const group = (attrs: Readonly<Record<string, unknown>> = {}) => aGroup(randomUUID(), attrs)
const documentOf = (entries: readonly object[]) => ({ version: 1, metadata: { name: 'load' }, entries })

const putYaml = (who: Asker, payload: string, query = '', headers = {}) =>
  who.send({
    ...{ method: 'PUT', url: `${url}${query}`, payload },
    headers: { 'content-type': 'application/yaml', ...headers },
  })

const find = (name: string) =>
  `{ model: service_core.group, identifiers: { name: "${randomUUID()}" }, attrs: { attributes: { a: !If [!Find [service_core.group, { name: "${name}" }], 1, 2] } } }`
const finds = (names: readonly string[]) =>
  `version: 1\nmetadata: { name: finds }\nentries:\n${names.map((name) => `  - ${find(name)}\n`).join('')}`

describe('look-ups', () => {
  test('of a thousand different rows are taken, however often each is named', async () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `none ${index}`)
    const text = finds([...names, ...names.slice(0, 100)])
    const sent = await statementsOf(async () => {
      // The answer comes when it is checked.
      expect((await putYaml(on.admin, text, '?dry_run=true', { prefer: 'respond-async' })).status).toBe(202)
    })
    // Not one by one.
    expect(sent.length).toBeLessThan(200)
  })

  test.each([1_001, 5_000])('of %s rows are refused without a look at one', async (count) => {
    const text = finds(Array.from({ length: count }, (_, index) => `none ${index}`))
    let answer: Awaited<ReturnType<typeof putYaml>> | undefined
    const sent = await statementsOf(async () => {
      answer = await putYaml(on.admin, text, '?dry_run=true')
    })
    expect(answer).toMatchObject({ status: 400, errors: [{ code: 'too_long' }] })
    expect(answer?.text).toContain('looks up more than 1000 rows by !Find')
    expect(sent.filter((each) => each.includes('found_in'))).toEqual([])
  })

  test('in one value are counted one by one', async () => {
    const list = Array.from({ length: 1_001 }, (_, index) => `!Find [service_core.group, [name, "none ${index}"]]`)
    const text = `version: 1\nmetadata: { name: list }\nentries:\n  - { model: service_core.group, conditions: [!Condition [OR, ${list.join(', ')}]], identifiers: { name: list } }\n`
    expect(await putYaml(on.admin, text)).toMatchObject({ status: 400, errors: [{ code: 'too_long' }] })
  })
})

describe('a caller without a permission to write', () => {
  const long = (letters: number) => JSON.stringify(documentOf([group({ attributes: { a: 'x'.repeat(letters) } })]))
  const put = (who: Asker, payload: string | Readable) =>
    who.send({ method: 'PUT', url, headers: { 'content-type': 'application/json' }, payload })

  test('sends at most 64 KiB, with and without a length', async () => {
    const who = await on.make.user({ permissions: ['view_group', 'view_run'] })
    expect((await put(who, long(60_000))).status).toBe(403)
    for (const payload of [long(66_000), Readable.from([long(66_000)])])
      expect(await put(who, payload)).toMatchObject({ status: 413, json: { detail: expect.stringContaining('65536') } })
  })

  test('is the only one whose body is not read', async () => {
    const who = await on.make.user({ permissions: ['add_group'] })
    expect((await put(who, long(66_000))).status).toBe(400)
  })
})

describe('a check', () => {
  const plan = () =>
    compile(
      {
        version: 1,
        metadata: { name: 'check' },
        entries: Array.from({ length: 1_200 }, () => ({ state: 'present', ...group() })),
      },
      on.engine.registry,
    )

  test('asks nothing more once it shall end', async () => {
    const stop = new AbortController()
    let asked = 0
    const counting: EngineReader = {
      ...reader(on.db),
      query: (row, statement) => {
        asked += 1
        if (asked === 2) stop.abort(new Error('the client went away'))
        return reader(on.db).query(row, statement)
      },
    }
    const checking = check(counting, on.engine, plan(), system, unconditional, stop.signal)
    await expect(checking).rejects.toThrow('the client went away')
    expect(asked).toBe(2)
    expect((await check(counting, on.engine, plan(), system, unconditional)).length).toBe(1_200)
  })

  test('whose client went away keeps its share until it has ended, and records nothing', async () => {
    const who = await on.make.user({ permissions: ['add_application', 'change_application'] })
    const origin = await on.app.listen({ host: '127.0.0.1', port: 0 })
    const slug = randomUUID()
    const body = JSON.stringify(documentOf([anApplication(slug, { name: 'Gone' })]))
    const put = (signal?: AbortSignal) =>
      fetch(`${origin}${url}`, {
        ...{ method: 'PUT', body, ...(signal && { signal }) },
        headers: { authorization: `Bearer ${who.token}`, 'content-type': 'application/json' },
      })
    const release = await held(on, (tx) => rows(tx, sql`LOCK TABLE applications IN ACCESS EXCLUSIVE MODE`))
    const client = new AbortController()
    const gone = put(client.signal).catch(() => 'gone')
    const waits = sql`SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
    await until('the check to wait', async () => (await rows(on.db, waits)).length > 0)
    client.abort()
    expect(await gone).toBe('gone')
    expect((await put()).status).toBe(429)
    await release()
    await until('the share to be free', async () => (await put()).status === 200)
    expect(await on.db.run.count({ where: { submitterPk: who.pk } })).toBe(1)
  })

  test('that is not done in time says so, and what to do', async () => {
    const hurried = await installation({ applyWaitMs: 300, workers: 'none' })
    const application = anApplication(randomUUID(), { name: 'Late' })
    const release = await held(hurried, (tx) => rows(tx, sql`LOCK TABLE applications IN ACCESS EXCLUSIVE MODE`))
    const answer = await hurried.admin.put(url, documentOf([application]))
    await release()
    expect(answer).toMatchObject({ status: 503 })
    expect(answer.text).toContain('The check of this document was not done within 0.3 s')
    expect(answer.text).not.toContain('database')
  })
})

test('a large document is answered as soon as it is recorded, and checked by the worker', async () => {
  const entries = Array.from({ length: 2_001 }, () => group())
  const logsOf = async (sent: Promise<Answer>, isApplied: boolean) => {
    const { headers, json } = await answered(202, sent)
    expect(json).toMatchObject({ code: 'accepted' })
    const runOf = async () =>
      (await on.admin.get(`${headers.location}?include_blueprint=false`)).json as { state: string; logs: string[] }
    await until('its end', async () => ['done', 'failed'].includes((await runOf()).state))
    expect(await runOf()).toMatchObject({ state: 'done', applied: isApplied })
    return (await runOf()).logs
  }
  await logsOf(on.admin.put(url, documentOf(entries)), true)
  const who = await on.make.user({ permissions: ['add_role'] })
  expect(await logsOf(who.put(url, documentOf(entries)), false)).toEqual([expect.stringContaining('add_group')])
  // All errors at once, as for a small one.
  const wrong = entries.map((each, at) => (at % 1_000 === 3 ? { ...each, attrs: { parent: `no-group-${at}` } } : each))
  expect(await logsOf(on.admin.put(url, documentOf(wrong)), false)).toEqual([
    'rolled back, for these reasons:',
    ...[3, 1_003].map((at) => expect.stringContaining(`entries.${at}.parent: No group is called "no-group-${at}"`)),
  ])
  const allWrong = entries.map((each) => ({ ...each, attrs: { parent: 'no-such-group' } }))
  const logs = await logsOf(on.admin.put(url, documentOf(allWrong)), false)
  expect([logs.length, logs.at(-1)]).toEqual([102, expect.stringContaining('1901')])
})

test('a user who may write nothing has a number of runs a day, by all tokens; others are not counted', async () => {
  const [reader, writer] = [await on.make.user(), await on.make.user({ permissions: ['add_group'] })]
  const skipped = JSON.stringify(documentOf([{ ...group(), conditions: [false] }]))
  expect((await putYaml(reader, skipped)).status).toBe(200)
  for (const { pk } of [reader, writer])
    await on.db.run.createMany({
      data: Array.from({ length: 200 }, () => ({
        ...{ id: uuid7(), title: 'x', requestId: 'x', submitterPk: pk, state: 'cancelled' as const },
        finishedAt: new Date(),
      })),
    })
  expect(await putYaml(on.as(await on.make.token(reader.pk)), skipped)).toMatchObject({ status: 429 })
  expect((await putYaml(writer, skipped)).status).toBe(200)
})
