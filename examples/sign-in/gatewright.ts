import { setTimeout as pause } from 'node:timers/promises'
import { gatewright } from './settings.ts'

/** What every consumer of Gatewright does: it reads one kind of configuration, follows it, and reports what happened. */

const { url, token } = gatewright

/** A configuration has at least these fields. Secrets are null for a caller who may not read them. */
export type Row = { readonly pk: number; readonly name: string }
export type Secrets = readonly { readonly value: string; readonly until: string | null }[] | null

type Answer<Found> = {
  readonly revision: string
  readonly reset: boolean
  readonly results: readonly Found[]
  readonly deleted: readonly { readonly pk: number }[]
  readonly next: number
}

export type Known<Found> = {
  get(key: string): Found | undefined
  values(): Iterable<Found>
}

/** Longer than the longest wait of the service. */
const answerMs = 45_000
const waitSeconds = 25

/** An answer that stays the same, however often it is asked. */
class Refusal extends Error {}

async function send(method: string, path: string, body?: unknown): Promise<Response> {
  const response = await fetch(`${url}/api/v3/consumers/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(answerMs),
  }).catch((cause: unknown) => {
    throw new Error(`${url} does not answer`, { cause })
  })
  if (response.ok) return response
  const text = `${method} ${path}: ${response.status} ${(await response.text()).slice(0, 300)}`
  throw response.status === 400 ? new Refusal(text) : new Error(text)
}

/** Tries until it succeeds, with pauses of 0.1 s to 5 s. @throws {Refusal} */
async function insist<Value>(work: () => Promise<Value>): Promise<Value> {
  for (let pauseMs = 100; ; pauseMs = Math.min(2 * pauseMs, 5_000)) {
    try {
      return await work()
    } catch (error) {
      if (error instanceof Refusal) throw error
      console.error(`${error instanceof Error ? error.message : error}; next try in ${pauseMs} ms`)
      await pause(pauseMs * (0.5 + Math.random() / 2))
    }
  }
}

/** Where applications find this consumer: Gatewright shows it to those that deploy. */
export const register = (kind: string, issuer: string) => insist(() => send('PUT', 'self/', { kind, issuer }))

/**
 * Reads all configurations of a kind, and follows them from there. While Gatewright is away, what is known stays.
 *
 * @param keyOf the natural key by which a configuration is found
 * @param changed is called after each change
 * @returns after the first reading
 */
export async function follow<Found extends Row>(
  kind: string,
  keyOf: (row: Found) => string,
  changed: (known: Known<Found>) => void,
): Promise<Known<Found>> {
  let rows = new Map<string, Found>()
  let keys = new Map<number, string>()
  let revision = ''
  const known: Known<Found> = { get: (key) => rows.get(key), values: () => rows.values() }

  const read = async (query: string) =>
    (await send('GET', `${kind}/?page_size=1000&${query}`)).json() as Promise<Answer<Found>>

  function forget(pk: number): void {
    const key = keys.get(pk) ?? ''
    // Another one may have taken the key over.
    if (rows.get(key)?.pk === pk) rows.delete(key)
    keys.delete(pk)
  }

  function put(row: Found): void {
    forget(row.pk)
    keys.set(row.pk, keyOf(row))
    rows.set(keyOf(row), row)
  }

  /** @param first the first page of the whole: its revision is the one to follow from */
  async function readAll(first: Answer<Found>): Promise<void> {
    const all = [...first.results]
    for (let { next } = first; next !== 0; ) {
      const page = await read(`after=${next}`)
      all.push(...page.results)
      next = page.next
    }
    rows = new Map()
    keys = new Map()
    for (const row of all) put(row)
    revision = first.revision
  }

  async function readNext(): Promise<void> {
    const response = await send(
      'GET',
      `${kind}/?page_size=1000&since=${encodeURIComponent(revision)}&wait=${waitSeconds}`,
    )
    if (response.status === 204) {
      revision = response.headers.get('gatewright-revision') ?? revision
      return
    }
    const answer = (await response.json()) as Answer<Found>
    if (answer.reset) await readAll(answer)
    else {
      for (const { pk } of answer.deleted) forget(pk)
      for (const row of answer.results) put(row)
      revision = answer.revision
    }
    changed(known)
  }

  await insist(async () => readAll(await read('')))
  changed(known)
  void (async () => {
    // What is refused once is refused always: a revision that is not taken any more, for one. All is read anew.
    for (;;) await insist(readNext).catch(() => insist(async () => readAll(await read(''))).then(() => changed(known)))
  })()
  return known
}

const mostReports = 10_000

/**
 * Sends reports in batches, the oldest first. They wait while Gatewright is away; too many lose the oldest.
 *
 * @param member the field of the body that holds the reports
 */
export function reporter(method: 'POST' | 'PATCH', path: string, member: string) {
  const waiting: object[] = []
  let isSending = false

  async function sendAll(): Promise<void> {
    if (isSending) return
    isSending = true
    while (waiting.length > 0) {
      const batch = waiting.splice(0, 1_000)
      const answer = await insist(() => send(method, path, { [member]: batch }))
      const { unknown = [] } = (await answer.json()) as { unknown?: unknown[] }
      if (unknown.length > 0)
        console.error(`${path}: Gatewright does not know ${JSON.stringify(unknown).slice(0, 300)}`)
    }
    isSending = false
  }

  return (report: object): void => {
    waiting.push(report)
    if (waiting.length > mostReports) waiting.shift()
    void sendAll()
  }
}
