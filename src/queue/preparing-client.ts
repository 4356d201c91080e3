import pg from 'pg'
import { statementName } from '../db/raw.ts'

/** Prepares each statement once per connection. BullMQ sends the same texts for each job, and without a name. */
export class PreparingClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    const query = this.query.bind(this) as (...args: unknown[]) => unknown
    const prepared = (asked: unknown, values: unknown, ...rest: unknown[]) =>
      typeof asked === 'string' && Array.isArray(values)
        ? query({ name: statementName(asked), text: asked, values }, ...rest)
        : query(asked, values, ...rest)
    Object.assign(this, { query: prepared })
  }
}
