import { pino } from 'pino'
import { check } from '../../../src/blueprint/check.ts'
import { outrightFor } from '../../../src/blueprint/outright.ts'
import { record } from '../../../src/blueprint/run/record.ts'
import { type Outcome, type Worker, work } from '../../../src/blueprint/run/work.ts'
import { toBlueprint } from '../../../src/blueprint/submission.ts'
import { print } from '../../../src/blueprint/yaml.ts'
import { type Tx, transaction } from '../../../src/db/client.ts'
import { sql } from '../../../src/db/sql.ts'
import { uuid7 } from '../../../src/ids.ts'
import { actorOfUser } from '../../../src/models/actor.ts'
import { type Body, named } from '../../support/installation.ts'
import { type Bench, bench } from '../engine.ts'

/** Runs without a queue: checked and recorded as the API does it, and worked on when the test says so. */
export type Stand = Bench & {
  readonly worker: Worker
  readonly log: readonly string[]
  readonly adminPk: number
  /** Records a run of this submission, or of one under a new name, by this user, or else the admin. */
  recorded(body?: Body, options?: { by?: number; createOnly?: boolean }): Promise<{ id: string; name: string }>
  work(id: string): Promise<Outcome>
  /** Keeps the run's row locked, as a worker does, until the returned function is called. */
  lock(id: string): Promise<() => Promise<void>>
  run(id: string): ReturnType<Bench['db']['prisma']['run']['findUniqueOrThrow']>
}

let count = 0

export async function stand(): Promise<Stand> {
  const there = await bench()
  const { db, engine } = there
  const log: string[] = []
  const worker: Worker = {
    db,
    engine,
    log: pino({ level: 'trace' }, { write: (line: string) => void log.push(line) }),
    runSecretsHours: 24,
  }
  const { pk: adminPk } = await db.prisma.user.findUniqueOrThrow({ where: { username: 'admin' } })
  return {
    ...there,
    ...{ worker, log, adminPk },
    recorded: async (sent, { by = adminPk, createOnly = false } = {}) => {
      count += 1
      const body = sent ?? (await named('radius', `run-${count}`))
      const received: unknown = JSON.parse(JSON.stringify(body))
      const { blueprint, plan, title, conditions } = toBlueprint(received, engine.registry, createOnly)
      const actor = await actorOfUser(db, { pk: by })
      if (actor === null) throw new Error(`no user has the key ${by}`)
      const findings = await check(db, engine, plan, actor, conditions)
      const id = uuid7()
      await record(db, engine.keyring, {
        id,
        title,
        submitterPk: by,
        requestId: 'r',
        blueprint: print(blueprint),
        conditions,
        outright: outrightFor(findings, actor),
      })
      return { id, name: String(body.provider.name) }
    },
    work: (id) => work(worker, id),
    lock: (id) => held(there, (tx) => tx.query(sql`SELECT 1 FROM runs WHERE id = ${id} FOR UPDATE`)),
    run: (id) => db.prisma.run.findUniqueOrThrow({ where: { id } }),
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
