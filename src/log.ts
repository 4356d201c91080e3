import { pino } from 'pino'
import type { LogLevel } from './config.ts'

export type Logger = pino.Logger

/**
 * Structured lines on stdout. What could carry a secret is cut out wherever it stands.
 *
 * @param name which process speaks: `api`, `worker`
 */
export const logger = (name: string, level: LogLevel): Logger =>
  pino({
    name,
    level,
    redact: {
      paths: ['req.headers.authorization', 'req.headers.cookie', '*.password', '*.token', '*.secret'],
      censor: '[hidden]',
    },
  })
