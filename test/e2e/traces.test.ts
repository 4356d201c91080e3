import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { type Body, named } from '../support/examples.ts'
import { atEnd, freePort, freshDatabase, freshRedis, needs, ownRedis, until, wideEnv } from '../support/kit.ts'
import { type ReceivedSpan, type Receiver, receiveTraces } from '../support/otlp.ts'
import { type Running, run } from '../support/processes.ts'

/** Traces of real processes, as a receiver of OpenTelemetry gets them. */

const secrets = { SECRET_KEY: 'a secret key for tests, 32 or more', BOOTSTRAP_TOKEN: 'a-token-for-the-first-admin' }
const programs = { api: 'src/server.ts', worker: 'workers/blueprint.ts' } as const
const path = '/api/v3/core/transactional/applications/'

/** Reports the packages of OpenTelemetry that are loaded, with the file that asked for each. */
const watch = `import { registerHooks } from 'node:module'
registerHooks({ resolve(name, context, next) {
  const found = next(name, context)
  if (found.url.includes('/@opentelemetry/')) process.stderr.write('loads ' + found.url + ' for ' + context.parentURL + '\\n')
  return found
} })`

const watched = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(watch)}` }

type Program = keyof typeof programs

type Stand = {
  start(program: Program, own?: Record<string, string>): Promise<Running>
  /** @param own settings of each */
  startBoth(own?: Partial<Record<Program, Record<string, string>>>): Promise<[api: Running, worker: Running]>
  /** Submits as the first admin. */
  put(body: Body, headers?: Record<string, string>): Promise<number>
  readonly url: string
}

/** @param env of both processes, beside those of the database */
async function standOn(redisUrl: string | null, env: Record<string, string>): Promise<Stand> {
  const { service } = await freshDatabase()
  const port = String(await freePort())
  const url = `http://127.0.0.1:${port}`
  const settings = {
    ...{ ...wideEnv, ...secrets, PORT: port, DATABASE_URL: service.url },
    ...(redisUrl !== null && { REDIS_URL: redisUrl }),
    ...env,
  }
  const start: Stand['start'] = async (program, own = {}) => {
    const running = run(programs[program], { env: { ...settings, ...own } })
    atEnd(async () => void (await running.stop()))
    await running.line(program === 'api' ? /"msg":"serving"/ : /"msg":"worker ready"/)
    return running
  }
  return {
    url,
    start,
    startBoth: (own = {}) => Promise.all([start('api', own.api), start('worker', own.worker)]),
    put: async (body, headers = {}) => {
      const authorization = { Authorization: `Bearer ${secrets.BOOTSTRAP_TOKEN}` }
      const answer = await fetch(`${url}${path}`, {
        method: 'PUT',
        headers: { ...authorization, 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
      await answer.arrayBuffer()
      return answer.status
    },
  }
}

const sendingTo = ({ url }: Receiver) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '50' })

const newTrace = () => {
  const [trace, parent] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')]
  return { trace, parent, traceparent: `00-${trace}-${parent}-01` }
}

/** The spans of one trace, once the worker has ended its own. */
async function traceOf({ spans }: Receiver, trace: string): Promise<readonly ReceivedSpan[]> {
  const own = () => spans.filter((span) => span.trace === trace)
  const isWhole = () => own().some(({ kind }) => kind === 'consumer') && own().some(({ kind }) => kind === 'server')
  await until(`trace ${trace} to arrive`, isWhole)
  return own()
}

/** The one span of that name. */
function only(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const found = spans.filter((span) => span.name === name)
  expect([name, found.length]).toEqual([name, 1])
  const [span] = found
  if (span === undefined) throw new Error(`there is no span ${name}`)
  return span
}

const statementsBelow = (spans: readonly ReceivedSpan[], { id }: ReceivedSpan) =>
  spans.filter(({ parent, kind }) => parent === id && kind === 'client')

const linesOf = (running: Running, message: string) =>
  running
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === message)

/** A PUT is one trace, which continues that of its client. */
async function expectOneTrace(redisUrl: string | null): Promise<void> {
  const receiver = await receiveTraces()
  const stand = await standOn(redisUrl, { ...sendingTo(receiver), ...watched })
  const [api, worker] = await stand.startBoth()
  const { trace, parent, traceparent } = newTrace()
  const clientSecret = 'a-client-secret-that-no-trace-may-show'
  const body = await named('oauth2', 'traced', { provider: { client_secret: clientSecret } })
  expect(await stand.put(body, { traceparent, tracestate: 'vendor=1', 'X-Request-Id': 'traced-1' })).toBe(200)
  const spans = await traceOf(receiver, trace)

  const server = only(spans, `PUT ${path}`)
  expect(server).toMatchObject({
    ...{ parent, kind: 'server', isError: false, state: 'vendor=1' },
    attributes: {
      ...{ 'http.request.method': 'PUT', 'http.route': path, 'url.path': path, 'url.scheme': 'http' },
      ...{ 'http.response.status_code': 200, 'gatewright.request.id': 'traced-1' },
    },
    resource: { 'service.name': 'gatewright-api', 'service.version': manifest.version },
  })
  const sent = only(spans, 'send apply')
  const runId = server.attributes['gatewright.run.id']
  const message = {
    ...{ 'messaging.system': 'bullmq', 'messaging.destination.name': 'apply' },
    ...{ 'messaging.message.id': `run-${runId}-1`, 'gatewright.run.id': runId },
  }
  expect(sent).toMatchObject({ parent: server.id, kind: 'producer', attributes: message })
  const processed = only(spans, 'process apply')
  expect(processed).toMatchObject({
    ...{ parent: sent.id, kind: 'consumer', state: 'vendor=1', isError: false },
    attributes: { ...message, 'gatewright.run.state': 'done', 'gatewright.run.applied': true },
    resource: { 'service.name': 'gatewright-worker' },
  })
  expect(processed.startNs).toBeGreaterThan(server.startNs)
  expect(processed.endNs).toBeGreaterThan(processed.startNs)

  const inApi = statementsBelow(spans, server).map(({ name }) => name)
  expect(inApi).toContain('INSERT runs')
  const inWorker = statementsBelow(spans, processed)
  expect(inWorker.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['BEGIN', 'SELECT runs', 'INSERT applications', 'UPDATE runs', 'COMMIT']),
  )
  const statement = inWorker.find(({ name }) => name === 'SELECT runs')
  expect(statement?.attributes).toMatchObject({
    ...{ 'db.system.name': 'postgresql', 'db.query.summary': 'SELECT runs' },
    'db.query.text': expect.stringContaining('WHERE id = $1::uuid'),
  })
  // Each is a part of another, or of the client's.
  const known = new Set([parent, ...spans.map(({ id }) => id)])
  expect(spans.filter((span) => !known.has(span.parent))).toEqual([])

  const all = JSON.stringify(receiver.spans, (_, value) => (typeof value === 'bigint' ? String(value) : value))
  for (const value of [...Object.values(secrets), clientSecret, 'client-traced', String(body.app.name)])
    expect([value, all.includes(value)]).toEqual([value, false])

  // A line may be on its way when the spans have arrived.
  const hasLines = () => linesOf(api, 'answered').length > 0 && linesOf(worker, 'run ended').length > 0
  await until('the lines of both processes', hasLines)
  expect(linesOf(api, 'answered').map(({ trace_id, request }) => [trace_id, request])).toContainEqual([
    trace,
    'traced-1',
  ])
  expect(linesOf(worker, 'run ended').map((line) => [line.trace_id, line.span_id])).toEqual([[trace, processed.id]])

  await Promise.all([api.stop(), worker.stop()])
  // Probes of the queue, and what the processes do by themselves, are not traced.
  expect(new Set(receiver.spans.map((span) => span.trace))).toEqual(new Set([trace]))
  for (const each of [api, worker])
    expect(each.output()).toMatch(/^loads \S*@opentelemetry\/sdk-trace\/\S* for \S*\/src\/tracing\/sdk\.ts$/m)
}

describe.runIf(needs('redis-server'))('with the queue in Redis', () => {
  test('a PUT is one trace', async () => expectOneTrace(await freshRedis()))
})

test('with the queue in PostgreSQL, a PUT is one trace', () => expectOneTrace(null))

test('a request that fails, and one of no route', async () => {
  const receiver = await receiveTraces()
  const stand = await standOn(null, { ...sendingTo(receiver), APPLY_WAIT_MS: '600' })
  const api = await stand.start('api')
  // No worker: the run is cancelled.
  expect(await stand.put(await named('radius', 'no-worker'))).toBe(503)
  await fetch(`${stand.url}/a-token-in-the-wrong-place?key=secret`)
  await fetch(`${stand.url}/-/health/live/`)
  await api.stop()
  const servers = receiver.spans.filter(({ kind }) => kind === 'server')
  expect(servers.map(({ name, isError }) => [name, isError])).toEqual([
    [`PUT ${path}`, true],
    ['GET', false],
  ])
  const [failed, unrouted] = servers
  expect(failed?.attributes).toMatchObject({ 'error.type': 'cancelled', 'http.response.status_code': 503 })
  expect(failed?.parent).toBe('')
  expect(unrouted?.attributes).toMatchObject({ 'http.response.status_code': 404 })
  expect(JSON.stringify(unrouted?.attributes)).not.toMatch(/wrong-place|secret/)
})

test('the settings of OpenTelemetry are kept to', async () => {
  const receiver = await receiveTraces()
  const stand = await standOn(null, {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/own/path`,
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=for-the-receiver',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_SERVICE_NAME: 'identity',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    OTEL_TRACES_SAMPLER: 'parentbased_always_off',
  })
  const [api, worker] = await stand.startBoth()
  const [sampled, unsampled] = [newTrace(), newTrace()]
  const body = await named('radius', 'sampled')
  expect(await stand.put(body)).toBe(200)
  expect(await stand.put(body, { traceparent: unsampled.traceparent.replace(/01$/, '00') })).toBe(200)
  expect(await stand.put(body, { traceparent: sampled.traceparent })).toBe(200)
  const spans = await traceOf(receiver, sampled.trace)
  await Promise.all([api.stop(), worker.stop()])
  expect(new Set(receiver.spans.map(({ trace }) => trace))).toEqual(new Set([sampled.trace]))
  expect(only(spans, 'process apply').resource).toMatchObject({
    ...{ 'service.name': 'identity', 'deployment.environment.name': 'test' },
  })
  expect(receiver.deliveries[0]).toMatchObject({
    path: '/own/path',
    headers: { 'api-key': 'for-the-receiver', 'content-encoding': 'gzip', 'content-type': 'application/x-protobuf' },
  })
})

async function wipe(url: string): Promise<void> {
  const redis = new Redis(url)
  await redis.flushall()
  redis.disconnect()
}

test.runIf(needs('redis-server'))('a job that was lost: is enqueued again in the trace of its submission', async () => {
  const receiver = await receiveTraces()
  const redis = await ownRedis()
  const stand = await standOn(redis.url, sendingTo(receiver))
  await stand.start('api')
  const { trace, traceparent } = newTrace()
  expect(await stand.put(await named('radius', 'lost'), { traceparent, Prefer: 'respond-async' })).toBe(202)
  await wipe(redis.url)
  await stand.start('worker')
  const spans = await traceOf(receiver, trace)
  const processed = only(spans, 'process apply')
  const server = only(spans, `PUT ${path}`)
  const again = spans.find(({ id }) => id === processed.parent)
  expect(again).toMatchObject({
    name: 'send apply',
    parent: server.id,
    resource: { 'service.name': 'gatewright-worker' },
  })
})

test('a receiver that is away, or never answers, fails no request and holds up no end', async () => {
  const stand = await standOn(null, { OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_EXPORTER_OTLP_TIMEOUT: '500' })
  const silent = await receiveTraces({ answers: false })
  const [api, worker] = await stand.startBoth({
    api: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}` },
    worker: { OTEL_EXPORTER_OTLP_ENDPOINT: silent.url },
  })
  for (let count = 0; count < 5; count += 1) expect(await stand.put(await named('radius', `away-${count}`))).toBe(200)
  const warning = /"msg":"traces are not delivered, and get lost; trying again"/
  await Promise.all([api.line(warning), worker.line(warning)])
  expect(await Promise.all([api.stop(), worker.stop()])).toEqual([
    { code: 0, signal: null },
    { code: 0, signal: null },
  ])
  for (const { output } of [api, worker]) expect(output().match(new RegExp(warning, 'g'))).toHaveLength(1)
})

test('statements belong to the span that sent them, up to 500, and show no value', async () => {
  const receiver = await receiveTraces()
  const { service } = await freshDatabase()
  const env = { ...secrets, DATABASE_URL: service.url, ...sendingTo(receiver) }
  const program = run('test/e2e/traced-statements.ts', { env })
  expect([await program.exited, program.output()]).toEqual([{ code: 0, signal: null }, ''])
  const { spans } = receiver
  const texts = (name: string) =>
    statementsBelow(spans, only(spans, name)).map(({ attributes }) => attributes['db.query.text'])
  expect(texts('many')).toEqual(Array(500).fill('SELECT $1::text AS many'))
  expect(only(spans, 'many').attributes['gatewright.parts_left_out']).toBe(10)
  expect(texts('few')).toEqual(Array(2).fill('SELECT $1::text AS few'))
  const [failed] = statementsBelow(spans, only(spans, 'failed'))
  expect(failed).toMatchObject({
    ...{ isError: true, message: '' },
    events: [{ 'exception.message': expect.stringContaining('22P02') }],
  })
  expect(spans).toHaveLength(3 + 500 + 2 + 1)
  expect(JSON.stringify(spans.map(({ attributes, events }) => [attributes, events]))).not.toContain('a-value')
})

test('without a receiver no package of OpenTelemetry is loaded, but its interfaces', async () => {
  const stand = await standOn(null, watched)
  for (const running of await stand.startBoth()) {
    const loads = running.output().matchAll(/^loads \S*\/(@opentelemetry\/[^/]+)\//gm)
    expect([...new Set([...loads].map(([, loaded]) => loaded))]).toEqual(['@opentelemetry/api'])
  }
})
