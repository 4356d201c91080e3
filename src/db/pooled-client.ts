import pg from 'pg'
import { statementName } from './raw.ts'

/** Settings of PostgreSQL, by name. A time is in milliseconds. */
export type Settings = Readonly<Record<string, string | number>>

type PgQuery = string | pg.QueryConfig
type Send = (asked: PgQuery, values?: unknown) => Promise<pg.QueryResult>
type Done = (error: Error | undefined, result?: pg.QueryResult) => void

/**
 * A driver's client for a pooler in transaction mode, where the server's session may change after each transaction
 * (docs/adr/0090-settings-of-a-transaction.md). It sends the settings, which `connect` otherwise sends at the start of a session,
 * with each transaction, in the packet of its first statement. A statement outside of a transaction becomes one of its own, in
 * one packet.
 *
 * @param settings hold in each transaction
 * @param keepsNames whether the pooler keeps statements that were prepared under a name
 */
export function pooledClient(settings: Settings, keepsNames: boolean): new (config?: pg.ClientConfig) => pg.Client {
  const set = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', true)`)
  const [begin, apply, commit] = [named('BEGIN'), named(`SELECT ${set.join(', ')}`), named('COMMIT')]

  return class extends pg.Client {
    #at: 'outside' | 'begun' | 'set' = 'outside'

    constructor(config?: pg.ClientConfig) {
      super(config)
      const driver = this.query.bind(this) as Send
      const send: Send = keepsNames ? driver : (asked, values) => driver(withoutName(asked), values)
      const query = (asked: PgQuery, values?: unknown, done?: Done) => {
        if (typeof values === 'function') return query(asked, undefined, values as Done)
        const answer = this.#ask(send, asked, values)
        if (done === undefined) return answer
        answer.then((result) => done(undefined, result), done)
        return undefined
      }
      // The driver declares one method with many signatures.
      Object.assign(this, { query })
    }

    #ask(send: Send, asked: PgQuery, values: unknown): Promise<pg.QueryResult> {
      const text = typeof asked === 'string' ? asked : asked.text
      const [before, isEnd] = [this.#at, text === 'COMMIT' || text === 'ROLLBACK']
      if (text === 'BEGIN') this.#at = 'begun'
      else if (isEnd) this.#at = 'outside'
      // A SELECT would fix the isolation level.
      if (text === 'BEGIN' || isEnd || before === 'set' || text.startsWith('SET TRANSACTION '))
        return send(asked, values)
      if (before === 'outside') return inOrder([send(begin), send(apply)], send(asked, values), [send(commit)])
      this.#at = 'set'
      return inOrder([send(apply)], send(asked, values))
    }
  }
}

/** A named statement: it shares the packet of others (`socket.ts`). */
const named = (text: string): pg.QueryConfig => ({ name: statementName(text), text })

/** Returns the answer in the middle. When several fail, the first one is the reason. */
async function inOrder<Answer>(before: Promise<unknown>[], answer: Promise<Answer>, after: Promise<unknown>[] = []) {
  await Promise.all([...before, answer, ...after])
  return answer
}

const withoutName = (asked: PgQuery): PgQuery => (typeof asked === 'string' ? asked : { ...asked, name: undefined })
