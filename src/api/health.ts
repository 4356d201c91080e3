import { z } from 'zod'
import type { Api } from '../http/api.ts'
import type { Check, Inspect } from '../http/readiness.ts'
import { appliesPath, probesPath, readyPath } from '../paths.ts'

/**
 * GET /-/health/live/ and /-/health/ready/, for process supervisors and load balancers, and /-/health/applies/, for monitoring.
 * They need no token, so the answers hold nothing that helps an attacker. They name the operator who has paused the queue
 * (docs/incidents.md).
 */

const live = z.object({ status: z.literal('ok') })

const checks = z.record(z.string(), z.object({ ok: z.boolean(), detail: z.string() }))

const retryAfterS = 2

const draining = 'This API is stopping, and serves what still comes: send new requests to another one.'

export function healthRoutes(app: Api, inspect: Inspect): void {
  // It checks nothing: a restart of this process would not bring the database back.
  const isAlive = { config: { permission: 'anyone' }, schema: { response: { 200: live } } } as const
  app.get(`${probesPath}health/live/`, isAlive, () => ({ status: 'ok' as const }))
  const isDraining = () => (app.isDraining() ? [draining] : [])
  answerChecks(app, readyPath, ['ready', 'not_ready', 'Not ready.'], inspect.serves, isDraining)
  answerChecks(app, appliesPath, ['applying', 'not_applying', 'Nothing is applied.'], inspect.applies)
}

/**
 * Answers 200 when all is well, and else 503 in the form that every 503 has, with the checks beside it.
 *
 * @param others sentences about what is wrong beside the checks
 */
function answerChecks(
  app: Api,
  path: string,
  [good, bad, sentence]: readonly [good: string, bad: string, sentence: string],
  read: () => Promise<Readonly<Record<string, Check>>>,
  others: () => readonly string[] = () => [],
): void {
  const healthy = z.object({ status: z.literal(good), checks })
  const unhealthy = z.object({ status: z.literal(bad), detail: z.string(), code: z.literal('unavailable'), checks })
  const schema = { response: { 200: healthy, 503: unhealthy } }
  app.get(path, { config: { permission: 'anyone' }, schema }, async (_, reply) => {
    const checks = await read()
    const failed = Object.values(checks).flatMap(({ ok, detail }) => (ok ? [] : [detail]))
    const wrong = new Set([...others(), ...failed])
    if (wrong.size === 0) return { status: good, checks }
    reply.code(503).header('Retry-After', retryAfterS)
    return { status: bad, detail: `${sentence} ${[...wrong].join(' ')}`, code: 'unavailable' as const, checks }
  })
}
