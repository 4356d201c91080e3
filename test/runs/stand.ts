import { pino } from 'pino'
import { check } from '../../src/apply/check.ts'
import { type Tx, transaction } from '../../src/db/client.ts'
import { reader } from '../../src/db/engine-tx.ts'
import { print } from '../../src/document/yaml.ts'
import { uuid7 } from '../../src/ids.ts'
import { type RequestConditions, unconditional } from '../../src/plan/engine.ts'
import { toBlueprint } from '../../src/plan/submission.ts'
import { actorOfUser } from '../../src/rights/actor.ts'
import { recordRun } from '../../src/runs/ledger.ts'
import { type Ended, type Worker, work } from '../../src/runs/work.ts'
import { workerLedger } from '../../src/runs/worker-ledger.ts'
import { type Bench, bench } from '../apply/engine.ts'
import { type Body, named, rows, sql } from '../support/kit.ts'
import { uncounted } from '../support/uncounted.ts'

/** Runs without a queue: checked and recorded as by the API; the test decides when a worker starts. */
export type Stand = Bench & {
  readonly worker: Worker
  readonly log: readonly string[]
  readonly adminPk: number
  /** Records a run of this submission, or of one under a new name, by this user, or else the admin. */
  recorded(body?: Body, options?: { by?: number } & Partial<RequestConditions>): Promise<{ id: string; name: string }>
  work(id: string): Promise<Ended | undefined>
  /** Keeps the run's row locked, as a worker does, until the returned function is called. */
  lock(id: string): Promise<() => Promise<void>>
  run(id: string): ReturnType<Bench['db']['run']['findUniqueOrThrow']>
}

let count = 0

export async function stand(): Promise<Stand> {
  const there = await bench()
  const { db, engine } = there
  const log: string[] = []
  const worker: Worker = {
    ledger: workerLedger({ db, transaction: there.transaction, engine, runSecretsHours: 24 }),
    log: pino({ level: 'trace' }, { write: (line: string) => void log.push(line) }),
    tally: uncounted,
  }
  const { pk: adminPk } = await db.user.findUniqueOrThrow({ where: { username: 'admin' } })
  return {
    ...there,
    worker,
    log,
    adminPk,
    recorded: async (sent, { by = adminPk, ...asked } = {}) => {
      count += 1
      const body = sent ?? (await named('radius', `run-${count}`))
      const received: unknown = JSON.parse(JSON.stringify(body))
      const { blueprint, plan, title, kind, slug, conditions } = toBlueprint(received, engine.registry, {
        ...unconditional,
        ...asked,
      })
      const actor = await actorOfUser(reader(db), { pk: by })
      if (actor === null) throw new Error(`no user has the key ${by}`)
      await check(reader(db), engine, plan, actor, conditions)
      const id = uuid7()
      const written = { submitter: { pk: by }, requestId: 'r', blueprint: print(blueprint), conditions }
      await recordRun(
        db,
        engine.keyring,
        { id, title, kind, slug, ...written },
        {
          notAfterMs: Date.now() + 60_000,
          isFlushed: false,
        },
      )
      return { id, name: String(body.provider.name) }
    },
    work: (id) => work(worker, id),
    lock: (id) => held(there, (tx) => rows(tx, sql`SELECT 1 FROM runs WHERE id = ${id} FOR UPDATE`)),
    run: (id) => db.run.findUniqueOrThrow({ where: { id } }),
  }
}

/** Opens a transaction, takes a lock in it, and keeps it until the returned function is called. */
export async function held(
  { db }: Pick<Bench, 'db'>,
  take: (tx: Tx) => Promise<unknown>,
): Promise<() => Promise<void>> {
  const taken = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const open = transaction(db, async (tx) => {
    await take(tx)
    taken.resolve()
    await release.promise
  })
  await Promise.race([taken.promise, open])
  return async () => {
    release.resolve()
    await open
  }
}
