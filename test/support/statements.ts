import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'
import { atEnd } from './at-end.ts'

/**
 * What `work` sends to PostgreSQL from this process, one text for each statement; those that only begin or end a
 * transaction do not count, and neither does what others send meanwhile.
 */
export async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  listen()
  const sent: string[] = []
  await heard.run(sent, work)
  return sent.filter((text) => !/^(BEGIN|COMMIT|ROLLBACK)\b/.test(text))
}

const heard = new AsyncLocalStorage<string[]>()
let listening = false

/** Every driver here, Prisma's too, sends through this one method. */
function listen(): void {
  if (listening) return
  listening = true
  const { query } = pg.Client.prototype
  Reflect.set(pg.Client.prototype, 'query', function (this: pg.Client, ...args: unknown[]) {
    const [asked] = args
    heard.getStore()?.push(typeof asked === 'string' ? asked : String(Object(asked).text))
    return Reflect.apply(query, this, args)
  })
  atEnd(() => void Reflect.set(pg.Client.prototype, 'query', query))
}
