import { AsyncLocalStorage } from 'node:async_hooks'
import { PrismaPg } from '@prisma/adapter-pg'
import type { SqlQuery, SqlQueryable } from '@prisma/driver-adapter-utils'
import pg from 'pg'
import { atEnd } from './at-end.ts'

/**
 * The statements that `work` sends to PostgreSQL from this process. Those that begin, set up or end a transaction do not
 * count, nor do those of other work.
 */
export async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  listen()
  const sent: string[] = []
  await heard.run(sent, work)
  return sent.filter((text) => !isFrame(text))
}

export type Recorder = {
  /** Statements so far, without those that only begin or end a transaction. */
  readonly sent: readonly string[]
  /** The first statement of each round trip so far: what is sent before the answer belongs to it. */
  readonly trips: readonly string[]
  /** Statements so far that did not go through Prisma's adapter. */
  past(): string[]
}

/**
 * Records the statements that this process sends from now on by connections of the product: not those of tests, of the
 * queue, of migrations or of the start.
 */
export async function recordStatements(): Promise<Recorder> {
  const sent: string[] = []
  const all: string[] = []
  const byPrisma: string[] = []
  const trips: string[] = []
  const waiting = new WeakSet<pg.Client>()
  hear((client, text) => {
    const { application_name: name = '' } = client.connectionParameters
    if (!/^gatewright-(?!queue|migrate|start)/.test(name)) return
    // The connection that listens asks now and then whether it lives: Prisma cannot send either.
    if (name === 'gatewright-listen' && /^(LISTEN\b|SELECT 1$)/.test(text)) return
    all.push(text)
    if (!isFrame(text)) sent.push(text)
    if (waiting.has(client)) return
    trips.push(text)
    waiting.add(client)
    client.once('drain', () => waiting.delete(client))
  })
  await hearAdapter((text) => void byPrisma.push(text))
  return {
    sent,
    trips,
    past: () => {
      const left = Map.groupBy(byPrisma, (text) => text)
      return all.filter((text) => left.get(text)?.pop() === undefined)
    },
  }
}

const heard = new AsyncLocalStorage<string[]>()
let listening = false

const isFrame = (text: string): boolean => /^(BEGIN|COMMIT|ROLLBACK|SET|SELECT set_config)\b/.test(text)

function listen(): void {
  if (listening) return
  listening = true
  atEnd(() => {
    listening = false
  })
  hear((_, text) => void heard.getStore()?.push(text))
}

type Client = pg.Client & { readonly connectionParameters: { readonly application_name?: string } }

/** Every driver here, Prisma's too, sends through this one method. */
function hear(onText: (client: Client, text: string) => void): void {
  const { query } = pg.Client.prototype
  Reflect.set(pg.Client.prototype, 'query', function (this: Client, ...args: unknown[]) {
    const [asked] = args
    onText(this, typeof asked === 'string' ? asked : String(Object(asked).text))
    return Reflect.apply(query, this, args)
  })
  atEnd(() => void Reflect.set(pg.Client.prototype, 'query', query))
}

/** What Prisma's adapter is asked for, in transactions and outside of them. */
async function hearAdapter(onText: (text: string) => void): Promise<void> {
  const adapter = await new PrismaPg(new pg.Pool()).connect()
  // The class that both have in common is not exported.
  const queryable: Pick<SqlQueryable, 'queryRaw' | 'executeRaw'> = Object.getPrototypeOf(Object.getPrototypeOf(adapter))
  for (const name of ['queryRaw', 'executeRaw'] as const) {
    const run = queryable[name]
    Reflect.set(queryable, name, function (this: SqlQueryable, asked: SqlQuery) {
      onText(asked.sql)
      return Reflect.apply(run, this, [asked])
    })
    atEnd(() => void Reflect.set(queryable, name, run))
  }
}
