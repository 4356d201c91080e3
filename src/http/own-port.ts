import Fastify, { type FastifyBaseLogger, LogController } from 'fastify'
import { withBasePath } from '../paths.ts'
import type { Api, ZodTypeProvider } from './api.ts'
import { validatorCompiler } from './zod.ts'

/**
 * Routes on a port of their own, for programs beside the service: the proxy that publishes the API does not reach them.
 *
 * @param log the log of the API; the port opens and closes with the API
 */
export function onOwnPort(app: Api, log: FastifyBaseLogger, at: { readonly port: number; readonly host: string }): Api {
  const own: Api = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    rewriteUrl: ({ url = '/' }) => withBasePath(url),
    routerOptions: { ignoreTrailingSlash: true },
    requestTimeout: 5_000,
    forceCloseConnections: true,
  }).withTypeProvider<ZodTypeProvider>()
  own.setValidatorCompiler(validatorCompiler)
  own.setSerializerCompiler(() => JSON.stringify)
  own.decorate('isDraining', () => app.isDraining())
  app.addHook('onReady', async () => void (await own.listen(at)))
  app.addHook('onClose', () => own.close())
  return own
}
