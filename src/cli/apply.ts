import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { type ClientConfig, readClientConfig } from '../config.ts'
import { ownerLabel } from '../models/fields.ts'
import { reasonOf, runProgram, StartError } from '../start-error.ts'

/**
 * `npm run apply -- FILE.yaml`: sends a blueprint to a running Gatewright.
 * Exit codes: 0 applied, 1 not applied, 2 outcome unknown.
 */

const usage = `npm run apply -- FILE.yaml [--owner LABEL] [--allow-grants] [--allow-takeover]

Sends a blueprint to a running Gatewright, at GATEWRIGHT_URL (http://HOST:PORT). The access token is GATEWRIGHT_TOKEN,
or the one that the first start wrote to DATA_DIR.

  --owner LABEL     you manage the applications and providers in it under this label, such as team-a
  --allow-grants    give rights to groups that have members whom the file does not name
  --allow-takeover  apply to what another owner manages or another user made; it belongs to your owner afterwards
`

const options = {
  help: { type: 'boolean', short: 'h' },
  owner: { type: 'string' },
  'allow-grants': { type: 'boolean' },
  'allow-takeover': { type: 'boolean' },
} as const

/** Longer than the longest APPLY_WAIT_MS of the server. */
const timeoutMs = 150_000

const answer = z.object({ applied: z.boolean(), logs: z.array(z.string()) })

async function main(): Promise<void> {
  const { values, positionals } = readArguments()
  if (values.help === true) {
    process.stdout.write(usage)
    return
  }
  const [file, ...others] = positionals
  if (file === undefined || others.length > 0) throw new StartError(`Name one file:\n${usage}`)
  const config = readClientConfig()
  const text = await readFile(file).catch((error: unknown) => {
    throw new StartError(`${file} cannot be read (${reasonOf(error)}).`)
  })
  process.exitCode = report(
    await send(config, text, { ...conditionHeaders(values), ...bearer(await readToken(config)) }),
  )
}

/** Whether the service is on this machine: what is sent to it crosses no network. */
const isLocal = (url: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)

function readArguments() {
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch (error) {
    throw new StartError(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
  }
}

type Values = ReturnType<typeof readArguments>['values']
type Headers = Readonly<Record<string, string>>

function conditionHeaders({ owner, ...values }: Values): Headers {
  const words = [...(values['allow-grants'] ? ['grants'] : []), ...(values['allow-takeover'] ? ['takeover'] : [])]
  return { ...ownerHeader(owner), ...(words.length > 0 && { 'gatewright-allow': words.join(', ') }) }
}

function ownerHeader(owner: string | undefined): Headers {
  if (owner === undefined) return {}
  const { error } = ownerLabel().safeParse(owner)
  if (error !== undefined) throw new StartError(`--owner: ${error.issues.map(({ message }) => message).join(' ')}`)
  // `fetch` sends headers as Latin-1, and the server reads them as UTF-8.
  return { 'gatewright-owner': Buffer.from(owner).toString('latin1') }
}

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })

/** @throws {StartError} where the token could be read on its way, or is not meant for this address */
async function readToken({ url, token, dataDir }: ClientConfig): Promise<string> {
  if (!isLocal(url) && new URL(url).protocol === 'http:')
    throw new StartError(`GATEWRIGHT_URL ${url} would send the access token unencrypted: use https://.`)
  if (token !== null) return token
  if (!isLocal(url))
    throw new StartError(
      `No access token for ${url}: set GATEWRIGHT_TOKEN. The one in DATA_DIR is for this machine only.`,
    )
  const file = join(dataDir, 'admin-token')
  const text = (await readFile(file, 'utf8').catch(() => '')).trim()
  if (text === '') throw new StartError(`No access token: set GATEWRIGHT_TOKEN, or DATA_DIR to where ${file} is.`)
  return text
}

type Answer = { readonly status: number; readonly body: unknown; readonly location: string | null }

async function send({ url }: ClientConfig, body: Buffer<ArrayBuffer>, headers: Headers): Promise<Answer> {
  const response = await fetch(new URL('/api/v3/blueprints/', url), {
    method: 'PUT',
    headers: { ...headers, 'content-type': 'application/yaml' },
    body,
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((error: unknown) => {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
    throw new StartError(
      `${url} does not answer (${reasonOf(cause)}). Is Gatewright running there? See GATEWRIGHT_URL.`,
    )
  })
  const parsed: unknown = await response.json().catch(() => null)
  return { status: response.status, body: parsed, location: response.headers.get('location') }
}

/** Prints what happened. @returns the exit code */
function report({ status, body, location }: Answer): number {
  const result = answer.safeParse(body)
  if (status === 200 && result.success) {
    for (const line of result.data.logs) process.stdout.write(`${line}\n`)
    process.stdout.write(result.data.applied ? 'applied\n' : 'not applied\n')
    return result.data.applied ? 0 : 1
  }
  const lines = status === 400 ? errorLines(body) : [detailOf(body)]
  for (const line of lines) process.stderr.write(`${line}\n`)
  process.stderr.write(status === 202 ? `outcome unknown: ask ${location}\n` : `not applied (${status})\n`)
  return status === 202 ? 2 : 1
}

const detailOf = (body: unknown): string => {
  const { data } = z.object({ detail: z.string() }).safeParse(body)
  return data?.detail ?? 'The answer is not one of Gatewright.'
}

/** `entries.3.name: This field is required.` */
function errorLines(body: unknown, path = ''): string[] {
  if (Array.isArray(body)) return body.map((message) => (path === '' ? String(message) : `${path}: ${message}`))
  if (typeof body !== 'object' || body === null) return []
  return Object.entries(body)
    .filter(([name]) => path !== '' || name !== 'code')
    .flatMap(([name, value]) =>
      errorLines(value, name === 'non_field_errors' ? path : [path, name].filter(Boolean).join('.')),
    )
}

await runProgram(main)
