import { execFile } from 'node:child_process'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import type { Db } from '../../src/db/client.ts'
import { registryEnvironment } from '../support/environment.ts'
import {
  adminToken,
  applyPath,
  documentsPath,
  freePort,
  freshDatabase,
  freshFolder,
  freshRedis,
  type QueueKind,
  wideEnv,
} from '../support/kit.ts'
import { type Running, run } from '../support/processes.ts'

/** What the tests of examples/sign-in share: its packages, its programs beside a service, and a user at a browser without scripts. */

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Copies examples/sign-in into a folder, with the configuration of types that it extends. @returns the copy */
export function copyExample(into = freshFolder()): string {
  const folder = join(into, 'examples/sign-in')
  cpSync(join(root, 'tsconfig.json'), join(into, 'tsconfig.json'))
  cpSync(join(root, 'examples/sign-in'), folder, { recursive: true, filter: (path) => !path.endsWith('node_modules') })
  return folder
}

/** Copies it, and installs what its lock file names. It needs the package registry. @returns the folder */
export async function installExample(): Promise<string> {
  const folder = copyExample()
  const options = ['--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts']
  await promisify(execFile)('npm', ['ci', ...options], { cwd: folder, env: registryEnvironment() })
  return folder
}

/** An application that runs: where a sign-in begins, and its redirect URI. */
export type Application = { readonly page: string; readonly redirect: string }

/** A service, its worker and programs of the example, as processes. */
export type Stand = {
  readonly db: Db
  /** The address of the first sign-in server. */
  readonly issuer: string
  start(file: string, line: RegExp, env: Record<string, string>, args?: string[]): Promise<Running>
  startApi(): Promise<Running>
  stopApi(): Promise<void>
  /** As the first admin; a text is sent as YAML. @returns the JSON of the answer, which is a success */
  send(method: string, path: string, body?: unknown): Promise<{ readonly key?: string }>
  /** Applies an application and its provider. */
  put(slug: string, provider: object, kind?: string): Promise<void>
  /** Makes a token for a user. @returns the environment of a consumer with it */
  consumer(username: string): Promise<Record<string, string>>
  openSignIn(username: string, issuer?: string): Promise<void>
  /** @param secret with which it authenticates */
  openApplication(secret: string, issuer?: string): Promise<Application>
  stop(): Promise<void>
}

/** @param folder of the example, installed */
export async function openStand(queue: QueueKind, folder: string): Promise<Stand> {
  const database = await freshDatabase()
  const gatewright = `http://127.0.0.1:${await freePort()}`
  const own = `http://127.0.0.1:${await freePort()}`
  const service: Record<string, string> = {
    ...wideEnv,
    DATABASE_URL: database.url,
    SECRET_KEY: 'a secret key for tests, 32 or more',
    BOOTSTRAP_TOKEN: adminToken,
    PORT: new URL(gatewright).port,
    LOG_LEVEL: 'info',
    ...(queue === 'redis' && { REDIS_URL: await freshRedis() }),
  }
  const processes: Running[] = []
  let api: Running | undefined

  const start: Stand['start'] = async (file, line, env, args = []) => {
    const started = run(file, { env, args })
    processes.push(started)
    await started.line(line)
    return started
  }

  const send: Stand['send'] = async (method, path, body) => {
    const type = typeof body === 'string' ? 'application/yaml' : 'application/json'
    const response = await fetch(`${gatewright}${path}`, {
      method,
      headers: { authorization: `Bearer ${adminToken}`, 'content-type': type },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    expect(response.status, `${method} ${path}: ${text}`).toBeLessThan(300)
    return text === '' ? {} : JSON.parse(text)
  }

  const stand: Stand = {
    db: database.db,
    issuer: own,
    start,
    send,
    async startApi() {
      api = await start('src/server.ts', /"msg":"serving"/, service)
      return api
    },
    async stopApi() {
      await api?.stop()
    },
    async put(slug, provider, kind = 'oauth2') {
      const provider_model = `service_providers_${kind}.${kind}provider`
      const body = { app: { slug, name: slug }, provider_model, provider: { name: slug, ...provider } }
      expect(await send('PUT', applyPath, body)).toMatchObject({ applied: true })
    },
    async consumer(username) {
      const { pk } = await database.db.user.findUniqueOrThrow({ where: { username } })
      await send('POST', '/api/v3/core/tokens/', { identifier: username, user: pk, intent: 'api' })
      const { key = '' } = await send('GET', `/api/v3/core/tokens/${username}/view_key/`)
      return { GATEWRIGHT_URL: gatewright, GATEWRIGHT_TOKEN: key }
    },
    async openSignIn(username, issuer = own) {
      const env = { ...(await stand.consumer(username)), SIGN_IN_PORT: new URL(issuer).port }
      await start(join(folder, 'server.ts'), /sign-in server: /, env)
    },
    async openApplication(CLIENT_SECRET, issuer = own) {
      const APP_PORT = String(await freePort())
      await start(join(folder, 'application.ts'), /application: /, { ISSUER: issuer, APP_PORT, CLIENT_SECRET })
      return { page: `http://127.0.0.1:${APP_PORT}/sign-in`, redirect: `http://127.0.0.1:${APP_PORT}/callback` }
    },
    async stop() {
      await Promise.all(processes.map((each) => each.stop()))
    },
  }
  await stand.startApi()
  await start('workers/blueprint.ts', /"msg":"worker ready"/, service)
  await send('PUT', documentsPath, readFileSync(join(root, 'examples/sign-in/setup.yaml'), 'utf8'))
  return stand
}

export type Page = {
  readonly url: URL
  readonly status: number
  readonly text: string
  /** The titles of all pages on the way, this one included. */
  readonly titles: readonly string[]
  /** What the application shows of the user; undefined: it shows none. */
  readonly claims: { readonly id_token: Claims; readonly userinfo: Claims } | undefined
}
type Claims = Readonly<Record<string, unknown>>

const unescaped = (text: string) => text.replaceAll('&quot;', '"').replaceAll('&amp;', '&')

type Answers = {
  readonly username?: string
  readonly password?: string
  readonly consent?: 'allow' | 'refuse'
  /** Whether forms are answered; else the first one is the end. */
  readonly answers?: boolean
  /** What happens before the first form is answered. */
  readonly meanwhile?: () => Promise<void>
}

/**
 * A user who keeps cookies, follows redirects, and answers each form once.
 *
 * @returns opens a page, and ends where no form waits for the first answer
 */
export function openUser({
  username = 'alice',
  password = 'alice-example-only',
  consent = 'allow',
  answers = true,
  meanwhile,
}: Answers = {}) {
  const cookies = new Map<string, string>()

  async function ask(url: URL, form?: Record<string, string>): Promise<Response> {
    const cookie = [...cookies].map((each) => each.join('=')).join('; ')
    const body = form && { method: 'POST', body: new URLSearchParams(form) }
    const response = await fetch(url, { ...body, redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    return response
  }

  return async function open(address: string): Promise<Page> {
    const titles: string[] = []
    const forms: [part: string, answer: Record<string, string>][] = [
      ['name="password"', { username, password, answer: 'sign-in' }],
      ['value="allow"', { answer: consent }],
    ]
    let url = new URL(address)
    let response = await ask(url)
    for (let steps = 0; steps < 20; steps += 1) {
      const location = response.headers.get('location')
      if (location !== null) {
        url = new URL(location, url)
        response = await ask(url)
        continue
      }
      const text = await response.text()
      titles.push(/<title>([^<]*)/.exec(text)?.[1] ?? '')
      const at = forms.findIndex(([part]) => text.includes(part))
      const [form] = at < 0 ? [] : forms.splice(at, 1)
      if (form === undefined || !answers) {
        const [, shown] = /<pre>(\{.*\})<\/pre>/s.exec(text) ?? []
        return { url, status: response.status, text, titles, claims: shown && JSON.parse(unescaped(shown)) }
      }
      if (forms.length === 1) await meanwhile?.()
      response = await ask(url, form[1])
    }
    throw new Error(`${address} does not end: ${url}`)
  }
}
