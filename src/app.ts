import { randomUUID } from 'node:crypto'
import Fastify, { type FastifyBaseLogger, LogController } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { blueprintRoutes } from './api/blueprints.ts'
import { consentRoutes } from './api/consents.ts'
import { dashboardRoutes } from './api/dashboard.ts'
import { docsRoutes } from './api/docs.ts'
import { groupRoutes } from './api/groups.ts'
import { healthRoutes } from './api/health.ts'
import { meRoutes } from './api/me.ts'
import { metricsRoutes } from './api/metrics.ts'
import { runRoutes } from './api/runs.ts'
import { tokenRoutes } from './api/tokens.ts'
import { totpRoutes } from './api/totp.ts'
import { transactionalRoutes } from './api/transactional.ts'
import { userRoutes } from './api/users.ts'
import type { Submitter } from './blueprint/run/submit.ts'
import { guardRoutes } from './http/access.ts'
import type { Api } from './http/api.ts'
import { acceptJson, bodyLimits } from './http/body.ts'
import { stringify } from './http/json.ts'
import { countRequests, openMetrics } from './http/metrics.ts'
import { describeRoutes } from './http/openapi.ts'
import { apiPrefix } from './http/paths.ts'
import { answerProblems, answerUnroutable } from './http/problems.ts'
import { answerUnreadable, refuseUnreadable } from './http/unreadable.ts'
import { noQuery, validatorCompiler } from './http/zod.ts'
import type { ApplyQueue } from './queue/backend.ts'
import './messages.ts'

/** What the API is built from; tests build the same with parts of their own. */
export type Deps = { readonly submitter: Submitter; readonly queue: ApplyQueue }

/** The table of contents of the API. */
export function buildApp({ submitter, queue }: Deps): Api {
  const { db, engine, applyWaitMs } = submitter
  const log: FastifyBaseLogger = submitter.log
  const app: Api = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request' }),
    bodyLimit: bodyLimits.bytes,
    frameworkErrors: answerUnroutable,
    clientErrorHandler: answerUnreadable(log),
    genReqId: ({ headers }) => saneRequestId(headers['x-request-id']) ?? randomUUID(),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 300 },
    // A client that sends slowly, or not at all, gives its socket back.
    requestTimeout: 25_000,
    // So does one whose socket is still, but while an apply waits it is still for a good reason.
    connectionTimeout: Math.max(30_000, applyWaitMs + 10_000),
    keepAliveTimeout: 10_000,
    // Node takes the larger of two limits for the other, and looks only now and then (nodejs.org/api/http.html).
    http: { headersTimeout: 25_000, connectionsCheckingInterval: 2_500, requireHostHeader: false },
    forceCloseConnections: 'idle',
  }).withTypeProvider<ZodTypeProvider>()
  app.setValidatorCompiler(validatorCompiler)
  // Answers are what the handler's type says; validating them again would cost more than making them.
  app.setSerializerCompiler(() => stringify)
  acceptJson(app)
  answerProblems(app)
  const metrics = openMetrics()
  countRequests(app, metrics)
  // Before anything that may refuse: an answer without it cannot be asked after.
  app.addHook('onRequest', async ({ id }, reply) => {
    reply.header('X-Request-Id', id)
  })
  refuseUnreadable(app)
  endConnectionsWhenClosing(app)
  guardRoutes(app, db)
  app.addHook('onRoute', (route) => {
    route.schema = { querystring: noQuery, ...route.schema }
  })
  const describe = describeRoutes(app, apiPrefix)
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions, actor } = request
    const facts = {
      method,
      route: routeOptions.url,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
      user: actor?.username,
    }
    // Probes come every other second and say nothing by themselves.
    request.log[routeOptions.url?.startsWith('/-/') ? 'debug' : 'info'](facts, 'answered')
  })

  app.register(
    async (api: Api) => {
      transactionalRoutes(api, submitter, metrics)
      blueprintRoutes(api, submitter, metrics)
      runRoutes(api, db, engine)
      userRoutes(api, db)
      meRoutes(api, db, engine.registry)
      groupRoutes(api, db, engine)
      tokenRoutes(api, db, engine)
      consentRoutes(api, db, engine.registry)
      totpRoutes(api, db)
    },
    { prefix: apiPrefix },
  )
  healthRoutes(app, db, queue)
  metricsRoutes(app, db, queue, metrics)
  docsRoutes(app, describe)
  dashboardRoutes(app, { db, keyring: engine.keyring, queue })
  return app
}

/** An answer given after the stop was asked for is its connection's last: kept alive, it would hold up the end. */
function endConnectionsWhenClosing(app: Api): void {
  let closing = false
  app.addHook('preClose', async () => {
    closing = true
  })
  app.addHook('onSend', (_, reply, payload, done) => {
    if (closing) reply.header('Connection', 'close')
    done(null, payload)
  })
}

const saneRequestId = (sent: string | string[] | undefined): string | undefined =>
  typeof sent === 'string' && /^[\w.:/+=-]{1,128}$/.test(sent) ? sent : undefined
