import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import helmet from '@fastify/helmet'
import Fastify, { type FastifyBaseLogger, LogController } from 'fastify'
import { applicationRoutes } from './api/applications.ts'
import { blueprintRoutes } from './api/blueprints.ts'
import { consentRoutes } from './api/consents.ts'
import { consumerActRoutes } from './api/consumer-acts.ts'
import { consumerRoutes } from './api/consumers.ts'
import { exchangeRoutes } from './api/exchange.ts'
import { groupMemberRoutes } from './api/group-members.ts'
import { groupRoutes } from './api/groups.ts'
import { healthRoutes } from './api/health.ts'
import { homeRoutes } from './api/home.ts'
import { meRoutes } from './api/me.ts'
import { metricsRoutes } from './api/metrics.ts'
import { providerRoutes } from './api/providers.ts'
import { runActRoutes } from './api/run-acts.ts'
import { runRoutes } from './api/runs.ts'
import { stackRoutes } from './api/stacks.ts'
import { storedRoutes } from './api/stored.ts'
import { tokenRoutes } from './api/tokens.ts'
import { totpRoutes } from './api/totp.ts'
import { transactionalRoutes } from './api/transactional.ts'
import { dashboardRoutes } from './dashboard/routes.ts'
import { poolUse } from './db/client.ts'
import { openExchange } from './exchange/exchange.ts'
import { openIssuerKeys } from './exchange/issuer-keys.ts'
import { guardRoutes } from './http/access.ts'
import { logAccess } from './http/access-log.ts'
import type { Api, ZodTypeProvider } from './http/api.ts'
import { auditImpersonatedReads } from './http/audited-reads.ts'
import { acceptJson, bodyLimits } from './http/body.ts'
import { compressAnswers } from './http/compress.ts'
import { prepareDrain } from './http/drain.ts'
import { forbidCaching, securityHeaders } from './http/headers.ts'
import { answerMalformed, refuseMalformed } from './http/malformed.ts'
import { countRequests, openMetrics } from './http/metrics.ts'
import { onOwnPort } from './http/own-port.ts'
import { plausibleTokens } from './http/plausible.ts'
import { answerProblems, answerUnroutable } from './http/problems.ts'
import { openRate, type RateLimits } from './http/rate-limit.ts'
import type { Inspect } from './http/readiness.ts'
import { keepRefusals } from './http/refusals.ts'
import { shareOut } from './http/shares.ts'
import { traceRequests } from './http/traced.ts'
import { noQuery, validatorCompiler } from './http/zod.ts'
import { requestIdForm } from './ids.ts'
import { auditList } from './lists/audit.ts'
import { list } from './lists/list.ts'
import { userList } from './lists/users.ts'
import { checkModels } from './models/check.ts'
import { permissionNames } from './models/registry.ts'
import { describeRoutes } from './openapi/describe.ts'
import { docsRoutes } from './openapi/routes.ts'
import { apiPrefix, withBasePath } from './paths.ts'
import type { ApplyQueue } from './queue/backend.ts'
import { runQueue } from './queue/enqueue.ts'
import type { RedisClient } from './queue/redis.ts'
import type { Retention } from './runs/retention.ts'
import { refuseWhileFull } from './submissions/limits.ts'
import type { Submitter } from './submissions/submission.ts'
import type { Live } from './views/one-run.ts'
import { longestWait, type WaitLimits, Waits, waitLimits } from './waits/waits.ts'
import './messages.ts'

/** What the API is built from. Tests pass their own. */
export type Deps = {
  readonly submitter: Submitter
  readonly inspect: Inspect
  readonly queue: ApplyQueue
  readonly limits: RateLimits
  /** What a page says of the age at which workers delete records. */
  readonly retention: Retention
  /** The port of metrics and health beside the API; null: the API has both. */
  readonly metricsAt?: { readonly port: number; readonly host: string } | null
  /** null: each process counts for itself. */
  readonly rateStore: RedisClient | null
  /** Trusted issuers that may have private addresses: PRIVATE_ISSUERS. */
  readonly privateIssuers?: readonly string[]
  /** Limits of the waits for a change; the default is that of `waits/waits.ts`. */
  readonly waits?: Partial<WaitLimits>
}

/** Builds the API: limits, hooks, then the routes. */
export function buildApp({ submitter, inspect, queue, limits, retention, ...others }: Deps): Api {
  const { metricsAt, rateStore, privateIssuers = [], waits: ownWaits } = others
  const { db, engine, applyWaitMs } = submitter
  const log: FastifyBaseLogger = submitter.log
  const app: Api = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request' }),
    bodyLimit: bodyLimits.bytes,
    frameworkErrors: answerUnroutable,
    clientErrorHandler: answerMalformed(log),
    genReqId: ({ headers }) => validRequestId(headers['x-request-id']) ?? randomUUID(),
    rewriteUrl: ({ url = '/' }: IncomingMessage) => withBasePath(url),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 300 },
    // Ends a request that arrives too slowly, or not at all.
    requestTimeout: 25_000,
    // Closes an idle connection. While an apply waits, or a request waits for a change, its connection is idle too.
    connectionTimeout: Math.max(longestWait * 1_000, applyWaitMs) + 10_000,
    keepAliveTimeout: 10_000,
    // Node uses the larger of `headersTimeout` and `requestTimeout`, and checks at intervals (nodejs.org/api/http.html).
    http: { headersTimeout: 25_000, connectionsCheckingInterval: 2_500, requireHostHeader: false },
    forceCloseConnections: 'idle',
  }).withTypeProvider<ZodTypeProvider>()
  app.setValidatorCompiler(validatorCompiler)
  // The compiler checks the types of answers. A check of each answer would cost more than to make it.
  app.setSerializerCompiler(() => JSON.stringify)
  acceptJson(app)
  answerProblems(app)
  // This comes before all others: what they do is a part of the request.
  traceRequests(app)
  // This is called, not registered: a registered plugin loads after the hooks below, which may refuse a request.
  void helmet(app, securityHeaders)
  forbidCaching(app)
  compressAnswers(app)
  const metrics = openMetrics(() => poolUse(db))
  countRequests(app, metrics)
  keepRefusals(app, db)
  // This is the first, so that refusals carry the id too: it finds the request in the log.
  app.addHook('onRequest', async ({ id }, reply) => {
    reply.header('X-Request-Id', id)
  })
  refuseMalformed(app)
  prepareDrain(app)
  refuseWhileFull(app, submitter.backlog)
  const countRequest = openRate(app, limits.rateLimitRequestsPerSecond, {
    redis: rateStore,
    onRefused: () => metrics.countLimited('requests'),
  })
  const plausible = plausibleTokens(db, engine.keyring)
  const door = { plausible, countFailedLogin: metrics.countFailedLogin }
  guardRoutes(app, db, { known: new Set(permissionNames(engine.registry)), countRequest, ...door })
  auditImpersonatedReads(app, db)
  shareOut(app, limits, metrics, submitter.backlog.part)
  app.addHook('onRoute', (route) => {
    route.schema = { querystring: noQuery, ...route.schema }
  })
  const describe = describeRoutes(app, apiPrefix)
  app.addHook('onReady', () => checkModels(db, engine.registry))
  logAccess(app)
  const exchange = openExchange({ db, engine, keysOf: openIssuerKeys({ privateIssuers }) })
  const waits = new Waits(app, { db, queue, log: submitter.log, metrics }, { ...waitLimits, ...ownWaits })
  const live: Live = { progressOf: runQueue(queue).progressOf, whyOf: submitter.whyNot.runs }

  app.register(
    async (api: Api) => {
      transactionalRoutes(api, submitter)
      blueprintRoutes(api, submitter)
      runRoutes(api, { db, engine, live, waits })
      runActRoutes(api, submitter)
      list(api, db, userList)
      meRoutes(api, db, engine.registry)
      groupRoutes(api, db, engine)
      groupMemberRoutes(api, db)
      tokenRoutes(api, db, engine)
      exchangeRoutes(api, db, exchange, { ...door, countRequest })
      consentRoutes(api, db, engine.registry)
      totpRoutes(api, db)
      applicationRoutes(api, db, engine)
      list(api, db, auditList(engine.registry))
      providerRoutes(api, db, engine.registry)
      storedRoutes(api, db, engine.registry)
      consumerRoutes(api, { db, engine, waits, metrics })
      consumerActRoutes(api, db, engine.registry)
      stackRoutes(api, db, engine.registry)
    },
    { prefix: apiPrefix },
  )
  homeRoutes(app)
  healthRoutes(app, inspect)
  const beside = metricsAt ? onOwnPort(app, log, metricsAt) : app
  if (beside !== app) healthRoutes(beside, inspect)
  metricsRoutes(beside, { db, queue, registry: engine.registry, inspect, waits }, metrics.registry)
  docsRoutes(app, engine.registry, describe)
  dashboardRoutes(app, { submitter, queue, door, inspect, retention, waits, live })
  return app
}

const validRequestId = (sent: string | string[] | undefined): string | undefined =>
  typeof sent === 'string' && requestIdForm.test(sent) ? sent : undefined
