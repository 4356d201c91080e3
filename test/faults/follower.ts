import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../support/until.ts'
import type { Target } from './clients.ts'

/** A client that waits for changes of the list of runs, through everything. */
export type Follower = {
  /** The runs that it has seen ended, by id. */
  ended(): ReadonlyMap<string, Ended>
  stop(): Promise<void>
}
type Ended = { readonly state: string; readonly applied: boolean | null }
type Page = { readonly results: readonly (Ended & { readonly id: string })[] }

export async function follow({ url, token }: Target): Promise<Follower> {
  const ended = new Map<string, Ended>()
  const over = new AbortController()
  let revision = ''
  const read = async (): Promise<boolean> => {
    const query = new URLSearchParams({ page_size: '1000', wait: '30', ...(revision !== '' && { since: revision }) })
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${url}/api/v3/blueprints/runs/?${query}`, { headers, signal: over.signal })
    if (!answer.ok) return false
    const { results } = (await answer.json()) as Page
    for (const { id, state, applied } of results)
      if (state !== 'queued' && state !== 'running') ended.set(id, { state, applied })
    revision = answer.headers.get('gatewright-revision') ?? ''
    return true
  }
  const reading = (async () => {
    while (!over.signal.aborted) await delay((await read().catch(() => false)) ? 0 : 200)
  })()
  await until('the first answer', () => revision !== '')
  return {
    ended: () => ended,
    stop: async () => {
      over.abort()
      await reading
    },
  }
}
