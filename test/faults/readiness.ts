import { until } from '../support/until.ts'
import type { Target } from './clients.ts'

/** What readiness says of the parts. */

type Checks = Readonly<Record<'database' | 'queue' | 'worker', { readonly ok: boolean; readonly detail: string }>>
type Readiness = { readonly status: number; readonly checks: Checks; readonly detail: string }

/** Longer than any part may stay unhealthy unnoticed. */
const noticedWithinMs = 15_000

export async function readiness({ url }: Pick<Target, 'url'>): Promise<Readiness> {
  const answer = await fetch(`${url}/-/health/applies/`)
  const { checks, detail = '' } = (await answer.json()) as Partial<Readiness>
  if (checks === undefined) throw new Error(`readiness has no checks: ${answer.status}`)
  return { status: answer.status, checks, detail }
}

/**
 * Waits until readiness says so, and reads it again and again for as long as a worker would take to be missed.
 *
 * @returns all different sentences of unhealthy parts
 */
export async function blamed(target: Pick<Target, 'url'>, isOver: () => boolean): Promise<Set<string>> {
  const details = new Set<string>()
  while (!isOver()) {
    const { checks } = await readiness(target)
    for (const { ok, detail } of Object.values(checks)) if (!ok) details.add(detail)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  return details
}

/** @returns milliseconds until it was ready again */
export async function untilReady(target: Pick<Target, 'url'>): Promise<number> {
  const from = performance.now()
  await until('readiness', async () => (await readiness(target)).status === 200, {
    withinMs: noticedWithinMs,
    everyMs: 100,
  })
  return performance.now() - from
}
