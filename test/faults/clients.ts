import { readFileSync } from 'node:fs'

/** The answer to one PUT. `applied` and `nothing` are promises; `unknown` is none. */
export type Outcome =
  /** 200, applied. */
  | 'applied'
  /** 4xx, 503, or 200 that was rolled back: nothing of it exists. */
  | 'nothing'
  /** 202, or no answer at all. */
  | 'unknown'

/** One PUT as its client saw it. */
export type Sent = {
  readonly slug: string
  /** Unique among submissions of the same slug: the application's description. */
  readonly content: string
  readonly outcome: Outcome
  /** null: the connection was lost. */
  readonly status: number | null
  /** The body, or why there was none. */
  readonly text: string
  /** Milliseconds, as performance.now() counts them. */
  readonly sentAt: number
  readonly ms: number
}

export type Target = { readonly url: string; readonly token: string }

const example = JSON.parse(readFileSync(new URL('../../examples/oauth2.json', import.meta.url), 'utf8'))

/** An application and a provider that are both called `slug`. */
export function submission(slug: string, content: string): unknown {
  const { app, provider, provider_model } = example
  return {
    provider_model,
    app: { ...app, name: `Application ${slug}`, slug, meta_description: content },
    provider: { ...provider, name: slug, client_id: slug },
  }
}

/** Longer than any answer may take. */
export const unansweredMs = 25_000

export async function put(
  { url, token }: Target,
  slug: string,
  options: { content?: string; ifNoneMatch?: '*' } = {},
): Promise<Sent> {
  const { content = `made for ${slug}`, ifNoneMatch } = options
  const sentAt = performance.now()
  const remember = (status: number | null, text: string): Sent => ({
    slug,
    content,
    outcome: outcomeOf(status, text),
    status,
    text,
    sentAt,
    ms: performance.now() - sentAt,
  })
  try {
    const answer = await fetch(`${url}/api/v3/core/transactional/applications/`, {
      method: 'PUT',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
      },
      body: JSON.stringify(submission(slug, content)),
      signal: AbortSignal.timeout(unansweredMs),
    })
    return remember(answer.status, await answer.text())
  } catch (error) {
    return remember(null, String((error as Error).cause ?? error))
  }
}

export function outcomeOf(status: number | null, text: string): Outcome {
  if (status === 200) return text.startsWith('{"applied":true') ? 'applied' : 'nothing'
  if (status === 503 || (status !== null && status >= 400 && status < 500)) return 'nothing'
  return 'unknown'
}

/**
 * Clients that send one PUT after another, each with a new slug.
 *
 * @param enough called before each PUT with the number of started ones; true ends the client
 * @returns all that was sent
 */
export async function crowd(
  target: Target,
  clients: number,
  prefix: string,
  enough: (begun: number) => boolean,
): Promise<Sent[]> {
  const log: Sent[] = []
  let begun = 0
  const client = async () => {
    while (!enough(begun)) {
      begun += 1
      log.push(await put(target, `${prefix}-${begun}`))
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return log
}

/** `p50 34 ms, p99 2107 ms, 3 x 503`: for the test's output. */
export function describeTimes(log: readonly Sent[]): string {
  const counts = Map.groupBy(log, ({ status }) => status ?? 'lost')
  const statuses = [...counts].map(([status, sent]) => `${sent.length} x ${status}`)
  return `p50 ${Math.round(quantile(log, 0.5))} ms, p99 ${Math.round(quantile(log, 0.99))} ms, ${statuses.join(', ')}`
}

/** The quantile of the response times. */
export function quantile(log: readonly Sent[], share: number): number {
  const times = log.map(({ ms }) => ms).sort((one, other) => one - other)
  return times[Math.max(0, Math.ceil(times.length * share) - 1)] ?? Number.NaN
}
