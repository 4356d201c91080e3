import { readConfig } from '../../src/config.ts'
import { startServer } from '../../src/server.ts'
import { atEnd } from '../support/at-end.ts'
import { wideEnv } from '../support/limits.ts'
import { type Running, run } from '../support/processes.ts'

/** The API in this process, on a free port, and workers as child processes. */
export type Stack = {
  readonly url: string
  get(path: string, init?: RequestInit): Promise<Answer>
  /** Sends as the first admin. */
  send(method: string, path: string, body?: unknown): Promise<Answer>
  /** Submits as the first admin. */
  put(body: unknown): Promise<Answer>
  /** Resolves when it consumes. The test must stop it. @param settings beside those of the stack */
  startWorker(settings?: Readonly<Record<string, string>>): Promise<Running>
  /** The settings of its workers. */
  readonly env: Readonly<Record<string, string>>
}

/** `ms`: how long the answer took. */
export type Answer = { status: number; headers: Headers; text: string; json: unknown; ms: number }

const secrets = { SECRET_KEY: 'a secret key for tests, 32 or more', BOOTSTRAP_TOKEN: 'a-token-for-the-first-admin' }

export async function startStack({
  databaseUrl,
  redisUrl,
  applyWaitMs = 10_000,
}: {
  databaseUrl: string
  redisUrl: string | null
  applyWaitMs?: number
}): Promise<Stack> {
  const env = { ...wideEnv, ...secrets, DATABASE_URL: databaseUrl, ...(redisUrl !== null && { REDIS_URL: redisUrl }) }
  const config = readConfig({ ...env, LOG_LEVEL: 'silent', APPLY_WAIT_MS: String(applyWaitMs) })
  const server = await startServer({ ...config, port: 0, databaseUrl, secretKey: secrets.SECRET_KEY })
  atEnd(() => server.close())

  async function get(path: string, init: RequestInit = {}): Promise<Answer> {
    const from = performance.now()
    const response = await fetch(`${server.url}${path}`, init)
    const text = await response.text()
    const ms = performance.now() - from
    const isJson = response.headers.get('Content-Type')?.startsWith('application/json') === true && text !== ''
    return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined, ms }
  }
  const send: Stack['send'] = (method, path, body) =>
    get(path, {
      method,
      headers: { Authorization: `Bearer ${secrets.BOOTSTRAP_TOKEN}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  return {
    url: server.url,
    get,
    send,
    put: (body) => send('PUT', '/api/v3/core/transactional/applications/', body),
    env,
    startWorker: async (settings = {}) => {
      const worker = run('workers/blueprint.ts', { env: { ...env, ...settings } })
      await worker.line(/worker ready/, { withinMs: 30_000 })
      return worker
    },
  }
}
