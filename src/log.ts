import { pino } from 'pino'
import type { LogLevel } from './config.ts'

export type Logger = pino.Logger

/**
 * Structured lines on stdout, with values that could be secrets hidden.
 *
 * @param name of the process: `api`, `worker`
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
