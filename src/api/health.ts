import { z } from 'zod'
import type { Api } from '../http/api.ts'
import type { Inspect } from '../http/readiness.ts'
import { probesPath, readyPath } from '../paths.ts'

/**
 * GET /-/health/live/ and /-/health/ready/, for process supervisors and load balancers. They need no token, so the
 * answers hold nothing that helps an attacker. They name the operator who has paused the queue (docs/operations.md).
 */

const check = z.object({ ok: z.boolean(), detail: z.string() })
const checks = z.object({ database: check, migrations: check, queue: check, worker: check, secrets: check })

const live = z.object({ status: z.literal('ok') })
const ready = z.object({ status: z.literal('ready'), checks })
/** A 503 has this form everywhere, here with the checks beside it. */
const notReady = z.object({
  status: z.literal('not_ready'),
  detail: z.string(),
  code: z.literal('unavailable'),
  checks,
})

const retryAfterS = 2

const draining = 'This API is stopping, and serves what still comes: send new requests to another one.'

export function healthRoutes(app: Api, inspect: Inspect): void {
  // It checks nothing: a restart of this process would not bring the database back.
  app.get(
    `${probesPath}health/live/`,
    { config: { permission: 'anyone' }, schema: { response: { 200: live } } },
    () => ({
      status: 'ok' as const,
    }),
  )

  app.get(
    readyPath,
    { config: { permission: 'anyone' }, schema: { response: { 200: ready, 503: notReady } } },
    async (_, reply) => {
      const found = await inspect()
      const wrong = Object.values(found).flatMap(({ ok, detail }) => (ok ? [] : [detail]))
      if (app.isDraining()) wrong.unshift(draining)
      if (wrong.length === 0) return { status: 'ready' as const, checks: found }
      const detail = `Not ready. ${wrong.join(' ')}`
      reply.code(503).header('Retry-After', retryAfterS)
      return { status: 'not_ready' as const, detail, code: 'unavailable' as const, checks: found }
    },
  )
}
