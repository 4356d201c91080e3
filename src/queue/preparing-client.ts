import pg from 'pg'
import { statementName } from '../db/raw.ts'

/**
 * Prepares each statement once per connection: BullMQ sends the same texts for each job, and without a name. A lost connection
 * fails its statement and its pool, but is no 'error' that ends the process.
 */
export class PreparingClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    this.on('error', () => {})
    const query = this.query.bind(this) as (...args: unknown[]) => unknown
    const prepared = (asked: unknown, values: unknown, ...rest: unknown[]) =>
      typeof asked === 'string' && Array.isArray(values)
        ? query({ name: statementName(asked), text: asked, values }, ...rest)
        : query(asked, values, ...rest)
    Object.assign(this, { query: prepared })
  }
}
