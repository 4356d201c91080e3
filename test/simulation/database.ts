import type { Flaw } from './flaws.ts'
import type { Row, Watch } from './watch.ts'
import { lostConnection, type Process, type Reply, type World } from './world.ts'

/** PostgreSQL as runs need it: rows, row locks, transactions, and what becomes of them when something fails. */

/** One transaction that is open. */
export type Open = {
  readonly process: Process
  readonly writes: (() => void)[]
  readonly locks: Set<string>
  isOpen: boolean
  lastAt: number
  isWatched: boolean
  /** Its commit is on the way, and takes effect later or never. */
  isInLimbo: boolean
}

type Waiter = { readonly isWaiting: () => boolean; readonly go: () => void; readonly fail: (error: Error) => void }

const idleMs = 10_000
/** A record reaches the disk after this time, unless another commit flushes it. */
const flushedAfterMs = 600

export const lockTimeout = (): Error => Object.assign(new Error('the lock was not given in time'), { code: '55P03' })
const serverAway = (): Error => Object.assign(new Error('the server is away'), { code: 'ECONNREFUSED' })

export type Database = ReturnType<typeof newDatabase>

export function newDatabase(world: World, watch: Watch, flaw: Flaw | undefined) {
  const rows = new Map<string, Row>()
  const unflushed = new Map<string, number>()
  const holders = new Map<string, Open>()
  const waiters = new Map<string, Waiter[]>()
  const open = new Set<Open>()
  let isAway = false

  const isLocked = (id: string) => flaw !== 'no lock' && holders.has(id)

  /** A statement outside of any transaction. */
  const ask = <Result>(process: Process, what: string, statement: (reply: Reply<Result>) => void): Promise<Result> =>
    world.call(process, what, (reply) => (isAway ? reply.fail(serverAway()) : statement(reply)))

  function write(id: string, change: Partial<Row>): void {
    const row = rows.get(id)
    if (row === undefined) return
    const before = { ...row }
    Object.assign(row, change)
    watch.wrote(before, row)
  }

  function insert(row: Row, isFlushed: boolean): void {
    rows.set(row.id, row)
    if (isFlushed) unflushed.clear()
    else unflushed.set(row.id, world.now())
  }

  /** Goes on when no transaction has locked the row; at once, or when it is released. */
  function whenFree(
    id: string,
    timeoutMs: number,
    isWanted: () => boolean,
    fail: (error: Error) => void,
    go: () => void,
  ): void {
    if (!isLocked(id)) {
      go()
      return
    }
    let isWaiting = true
    const end = (act: () => void) => () => {
      isWaiting = false
      act()
    }
    const waiter: Waiter = {
      isWaiting: () => isWaiting && isWanted(),
      go: end(go),
      fail: (error) => isWaiting && end(() => fail(error))(),
    }
    waiters.set(id, [...(waiters.get(id) ?? []), waiter])
    world.after(timeoutMs, () => waiter.fail(lockTimeout()))
  }

  function release(tx: Open): void {
    tx.isOpen = false
    open.delete(tx)
    for (const id of tx.locks) {
      if (holders.get(id) === tx) holders.delete(id)
      const queue = waiters.get(id) ?? []
      while (!holders.has(id) && queue.length > 0) {
        const next = queue.shift()
        if (next?.isWaiting() === true) next.go()
      }
    }
  }

  function begin(process: Process): Open {
    const tx: Open = {
      process,
      writes: [],
      locks: new Set(),
      isOpen: true,
      lastAt: world.now(),
      isWatched: false,
      isInLimbo: false,
    }
    open.add(tx)
    process.atCrash.push(() => orphan(tx))
    return tx
  }

  function commit(tx: Open): void {
    if (!tx.isOpen) return
    for (const act of tx.writes) act()
    if (tx.writes.length > 0) unflushed.clear()
    release(tx)
    for (const id of tx.locks) watch.committed(rows.get(id))
  }

  function rollBack(tx: Open): void {
    if (flaw === 'no rollback') commit(tx)
    else if (tx.isOpen) release(tx)
  }

  /**
   * Its connection is gone. The server notices that at once, when the process has ended; or, when its machine or the
   * network has failed, after the transaction has been idle for too long.
   */
  function orphan(tx: Open): void {
    if (!tx.isOpen || tx.isInLimbo) return
    const noticedMs = world.random.chance(world.faults.silent) ? world.random.between(0, idleMs) : 0
    world.after(noticedMs, () => tx.isOpen && release(tx))
  }

  /** `idle_in_transaction_session_timeout` */
  function watchIdle(tx: Open): void {
    world.after(Math.max(1, tx.lastAt + idleMs - world.now()), () => {
      if (!tx.isOpen) return
      if (world.now() - tx.lastAt < idleMs) return watchIdle(tx)
      world.note(`${tx.process.name}: its transaction was idle for too long`)
      release(tx)
    })
  }

  /** A statement in a transaction. */
  const askIn = <Result>(tx: Open, what: string, statement: (reply: Reply<Result>) => void): Promise<Result> =>
    ask(tx.process, what, (reply) => {
      if (!tx.isOpen) return reply.fail(lostConnection())
      tx.lastAt = world.now()
      if (!tx.isWatched) watchIdle(tx)
      tx.isWatched = true
      statement(reply)
    })

  function lock(tx: Open, id: string): void {
    holders.set(id, tx)
    tx.locks.add(id)
  }

  /** Open transactions are gone, and records that had not reached the disk. */
  function crash(awayMs: number): void {
    world.note('the database crashes')
    for (const tx of [...open]) {
      tx.isOpen = false
      open.delete(tx)
    }
    holders.clear()
    for (const waiter of [...waiters.values()].flat()) waiter.fail(lostConnection())
    waiters.clear()
    for (const [id, at] of unflushed) {
      if (world.now() - at > flushedAfterMs || rows.get(id)?.state !== 'queued') continue
      rows.delete(id)
      watch.vanished(id)
    }
    unflushed.clear()
    isAway = true
    world.after(awayMs, () => {
      isAway = false
    })
  }

  return { rows, ask, askIn, begin, commit, rollBack, orphan, lock, whenFree, isLocked, write, insert, crash }
}
