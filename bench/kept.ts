import { createHash } from 'node:crypto'
import pg from 'pg'
import { freePort } from '../test/support/free-port.ts'
import { wideEnv } from '../test/support/limits.ts'
import { run } from '../test/support/processes.ts'
import { within } from '../test/support/template.ts'
import { answers } from './stand.ts'

/** An installation whose database stays on its server: it is filled once, and measured many times. */

/** @property secretKey the same each time, as the token: both follow from the database's name */
export type Kept = {
  readonly name: string
  readonly database: string
  readonly secretKey: string
  readonly token: string
}

const derived = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** Another secret of the installation with this name. */
export const secretOf = ({ name }: Pick<Kept, 'name'>, purpose: string): string => derived(`${name} ${purpose}`)

/** Makes the database unless it is there. */
export async function openKept(server: string, name: string): Promise<Kept> {
  await within(server, async (client) => {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name])
    if (rowCount === 0) await client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`)
  })
  const url = new URL(server)
  url.pathname = name
  return { name, database: url.href, secretKey: derived(name), token: secretOf({ name }, 'token') }
}

/** @property at `http://127.0.0.1:40123` @property pid of the API */
export type Started = { readonly at: string; readonly pid: number; stop(): Promise<void> }

/** Makes the tables and the first rows, unless they are there: starts the API, and stops it. */
export async function install(kept: Kept): Promise<void> {
  const { api } = await startApi(kept)
  await api.stop()
}

/** Starts API and worker, as processes. */
export async function startKept(kept: Kept): Promise<Started> {
  const { api, at, env } = await startApi(kept)
  const worker = run('workers/blueprint.ts', { env })
  await answers(`${at}/-/health/applies/`, worker)
  return {
    at,
    pid: api.pid,
    stop: async () => {
      await Promise.all([api.stop(), worker.stop()])
    },
  }
}

async function startApi({ database, secretKey, token }: Kept) {
  const port = await freePort()
  const env = {
    ...{ ...wideEnv, DATABASE_URL: database, SECRET_KEY: secretKey, BOOTSTRAP_TOKEN: token, LOG_LEVEL: 'warn' },
    ...{ PORT: String(port), RUN_DAYS: '3650', AUDIT_DAYS: '3650' },
  }
  const at = `http://127.0.0.1:${port}`
  const api = run('src/server.ts', { env: { ...env, NODE_OPTIONS: '--max-semi-space-size=4' } })
  await answers(`${at}/-/health/live/`, api)
  return { api, at, env }
}
