import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readable } from '../../src/standalone/lines.ts'
import { example, freePort, freshFolder, needs, run } from '../support/kit.ts'

/** What `npm start` prints on a terminal of what API and worker log. */

const time = new Date(2026, 10, 23, 9, 5, 7).getTime()
const logged = (facts: object) =>
  JSON.stringify({ level: 30, time, pid: 1, hostname: 'h', name: 'worker', msg: '', ...facts })
const ended = { msg: 'run ended', run: 'r-1', title: 'apply oauth2 grafana', user: 'ada', queue_ms: 3, work_ms: 20 }
const route = '/api/v3/core/transactional/applications/'
const answered = { name: 'api', msg: 'answered', method: 'PUT', route, ms: 4, user: 'ada', run: null, title: null }
const bug = {
  type: 'Error',
  message: 'a broken index',
  stack: 'Error: a broken index\n    at apply (src/apply/x.ts:7:1)\n    at y',
}

test.each([
  [
    'an applied run',
    { ...ended, outcome: 'applied' },
    'INFO (worker): applied, apply oauth2 grafana, by ada, 23 ms, run r-1',
  ],
  [
    'an unchanged one, while impersonating',
    { ...ended, outcome: 'unchanged', real_user: 'bob' },
    'INFO (worker): unchanged, apply oauth2 grafana, by ada (bob), 23 ms, run r-1',
  ],
  [
    'a refused run',
    { ...ended, outcome: 'refused', code: 'conflict' },
    'INFO (worker): refused, apply oauth2 grafana, by ada, 23 ms, run r-1: conflict',
  ],
  [
    'a failed run',
    {
      ...ended,
      level: 50,
      msg: 'run ended: it failed unexpectedly',
      outcome: 'failed',
      code: 'server_error',
      err: bug,
    },
    'ERROR (worker): failed, apply oauth2 grafana, by ada, 23 ms, run r-1: server_error: a broken index (at apply (src/apply/x.ts:7:1))',
  ],
  [
    'a refusal before the queue',
    { ...answered, status: 400, code: 'invalid' },
    `INFO (api): PUT ${route} 400, by ada, 4 ms: invalid`,
  ],
  [
    'one whose document was read',
    { ...answered, title: 'apply oauth2 x', status: 409, code: 'conflict' },
    `INFO (api): PUT ${route} 409, apply oauth2 x, by ada, 4 ms: conflict`,
  ],
  [
    'a run that the API cancelled',
    {
      ...answered,
      level: 40,
      title: 'apply oauth2 x',
      run: 'r-2',
      status: 503,
      code: 'cancelled',
      detail: 'Not applied: no worker took it in time.',
    },
    `WARN (api): PUT ${route} 503, apply oauth2 x, by ada, 4 ms, run r-2: cancelled: Not applied: no worker took it in time.`,
  ],
  [
    'a failed request of another kind',
    { ...answered, level: 40, method: 'GET', route: '/x/', status: 503, detail: 'Away.' },
    'WARN (api): GET /x/ 503, by ada, 4 ms: Away.',
  ],
  [
    'a warning',
    { level: 40, msg: 'trying the run again', title: 'apply oauth2 x', cause: 'deadlock' },
    'WARN (worker): trying the run again, apply oauth2 x: deadlock',
  ],
  [
    'a part that is healthy again',
    { name: 'api', part: 'worker', msg: 'A worker takes jobs.' },
    'INFO (api): A worker takes jobs.',
  ],
  ['what would move the cursor', { level: 40, msg: 'a\u001b[2Jb\nc' }, 'WARN (worker): a\\u001b[2Jb c'],
])('%s is one line', (_, facts, line) => {
  expect(readable(logged(facts))).toBe(`[09:05:07] ${line}`)
})

test.each([
  ['a request that reads', { ...answered, method: 'GET', route: '/api/v3/core/users/', status: 200 }],
  ['an answer whose run the worker has ended', { ...answered, run: 'r-1', status: 200 }],
  ['the answer to a failed run', { ...answered, level: 40, run: 'r-1', status: 500, code: 'server_error' }],
  [
    'a refused list',
    { ...answered, method: 'GET', route: '/api/v3/core/users/', status: 403, code: 'permission_denied' },
  ],
  ['the start of a worker', { msg: 'worker ready' }],
])('%s is no line', (_, facts) => {
  expect(readable(logged(facts))).toBeNull()
})

test('what is no log line stays as it is', () => {
  for (const line of ['Error: x', '{"a":1}', '{ broken', '']) expect(readable(line)).toBe(line)
})

describe.runIf(needs('script'))('npm start', () => {
  const put = async (port: number, dataDir: string, body: unknown) =>
    fetch(`http://127.0.0.1:${port}${route}`, {
      method: 'PUT',
      headers: {
        authorization: `Bearer ${readFileSync(join(dataDir, 'admin-token'), 'utf8').trim()}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    })

  test('on a terminal prints a line for each submission and each failure, and no JSON', async () => {
    const [dataDir, port] = [join(freshFolder(), 'data'), await freePort()]
    const server = run('test/standalone/in-terminal.ts', {
      env: { DATA_DIR: dataDir, PORT: String(port), TERM: 'xterm' },
    })
    await server.line(/Ctrl-C stops everything/, { withinMs: 60_000 })
    const body = await example('oauth2')
    expect((await put(port, dataDir, body)).status).toBe(200)
    await server.line(
      /^\[\d\d:\d\d:\d\d\] INFO \(worker\): applied, apply oauth2 grafana, by admin, \d+ ms, run \S+\s*$/,
    )
    expect((await put(port, dataDir, body)).status).toBe(200)
    await server.line(/ INFO \(worker\): unchanged, apply oauth2 grafana, by admin, /)
    expect((await put(port, dataDir, { ...body, provider: {} })).status).toBe(400)
    await server.line(/ INFO \(api\): PUT .* 400, .*by admin, \d+ ms: invalid\s*$/)
    const [, shown = ''] = server.output().split('Ctrl-C stops everything.')
    expect(shown.trim().split('\n')).toHaveLength(3)
    expect(server.output()).not.toContain('{"level"')
    expect(await server.stop()).toEqual({ code: 0, signal: null })
  })

  test('with LOG_LEVEL, or without a terminal, prints JSON, and its worker serves metrics where it is told to', async () => {
    const [dataDir, port] = [join(freshFolder(), 'data'), await freePort()]
    const settings = { DATA_DIR: dataDir, PORT: String(port) }
    const inTerminal = run('test/standalone/in-terminal.ts', { env: { ...settings, TERM: 'xterm', LOG_LEVEL: 'info' } })
    await inTerminal.line(/Ctrl-C stops everything/, { withinMs: 60_000 })
    expect((await put(port, dataDir, await example('oauth2'))).status).toBe(200)
    await inTerminal.line(/^\{"level":30,.*"msg":"run ended"\}\s*$/)
    expect(await inTerminal.stop()).toEqual({ code: 0, signal: null })
    const metricsPort = await freePort()
    const env = { ...settings, WORKER_METRICS_PORT: String(metricsPort) }
    const piped = run('src/standalone/main.ts', { env })
    await piped.line(/Ctrl-C stops everything/, { withinMs: 60_000 })
    const scraped = await fetch(`http://127.0.0.1:${metricsPort}/-/metrics/`)
    expect(await scraped.text()).toContain('gatewright_build_info{program="worker"')
    expect((await put(port, dataDir, await example('oauth2'))).status).toBe(200)
    expect(await piped.stop()).toEqual({ code: 0, signal: null })
    // Nothing of the level `warn` has happened.
    const [, shown = ''] = piped.output().split('Ctrl-C stops everything.')
    expect(shown.replace(/Stopping \.\.\. stopped\./, '').trim()).toBe('')
  })
})
