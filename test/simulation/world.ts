import type { Random } from './random.ts'

/** Time, processes and the network of one simulation. Nothing here takes real time. */

/** One life of a program. It starts again as another process. */
export type Process = {
  readonly name: string
  isAlive: boolean
  /** What the others notice of its end. */
  readonly atCrash: (() => void)[]
}

/** Probabilities, all 0 once faults stop. */
export type Faults = {
  /** Each call: the process crashes before the call takes effect, or after it and before the answer. */
  crash: number
  /** Each call: the connection is lost before it takes effect, or after it and before the answer. */
  lost: number
  /** Each way through the network: it takes up to 15 s. */
  slow: number
  /** Each commit: the connection is lost, and the commit takes effect later or never. */
  limbo: number
  /** Each lost connection: the server does not notice it for up to 10 s. */
  silent: number
  /** Each job: it is delivered twice, is lost, waits for seconds. */
  duplicate: number
  drop: number
  delay: number
  /** Each notification: it is lost. */
  unheard: number
}

/** The answer to a call. One of the two is called, once. */
export type Reply<Result> = { ok(result: Result): void; fail(error: Error): void }

export type World = {
  readonly random: Random
  readonly faults: Faults
  now(): number
  /** Calls of one kind before or after which a process has crashed: `commit, before`. */
  readonly crashes: Map<string, number>
  note(text: string): void
  after(ms: number, act: () => void): void
  start(name: string): Process
  crash(process: Process): void
  crashAll(): void
  /**
   * What a process awaits: it reaches the other side, takes effect there, and is answered. A process that has crashed by
   * then never continues.
   */
  call<Result>(process: Process, what: string, request: (reply: Reply<Result>) => void): Promise<Result>
  sleep(process: Process, ms: number): Promise<void>
  /** Lets a process continue, if it lives. Whatever continues a process does so by this. */
  wake(process: Process, act: () => void): void
  /** @throws when the answer takes longer; it may still take effect */
  inTime<Result>(process: Process, answer: Promise<Result>, ms: number): Promise<Result>
  /** Runs everything in the order of time. @param isOver asked before each event */
  run(isOver: () => boolean): Promise<void>
}

export const lostConnection = (): Error => Object.assign(new Error('the connection was lost'), { code: 'ECONNRESET' })

type Event = { readonly at: number; readonly order: number; readonly act: () => void }

export function newWorld(random: Random, faults: Faults, trace: ((line: string) => void) | undefined): World {
  const events: Event[] = []
  const crashes = new Map<string, number>()
  const living = new Set<Process>()
  let now = 0
  /** A process got an answer, and continues before the next event. */
  let isAwake = false

  const note = (text: string) => trace?.(`${(now / 1_000).toFixed(3).padStart(9)} s  ${text}`)

  // Either of two events at the same time may be the first.
  const after = (ms: number, act: () => void) => push(events, { at: now + ms, order: random.next(), act })

  const way = () => (random.chance(faults.slow) ? random.between(50, 15_000) : random.between(0.1, 6))

  function crash(process: Process): void {
    if (!process.isAlive) return
    note(`${process.name} crashes`)
    process.isAlive = false
    living.delete(process)
    for (const notice of process.atCrash) notice()
  }

  function mayCrash(process: Process, point: string): void {
    if (!process.isAlive || !random.chance(faults.crash)) return
    crashes.set(point, (crashes.get(point) ?? 0) + 1)
    note(`${process.name}: ${point}:`)
    crash(process)
  }

  function wake(process: Process, act: () => void): void {
    if (!process.isAlive) return
    isAwake = true
    act()
  }

  const world: World = {
    random,
    faults,
    crashes,
    note,
    after,
    crash,
    crashAll: () => {
      for (const process of [...living]) crash(process)
    },
    wake,
    now: () => now,
    start: (name) => {
      note(`${name} starts`)
      const process: Process = { name, isAlive: true, atCrash: [] }
      living.add(process)
      return process
    },
    call: (process, what, request) =>
      new Promise((resolve, reject) => {
        const answer = (act: () => void) =>
          after(way(), () => {
            mayCrash(process, `${what}, after`)
            wake(process, act)
          })
        const lose = () => {
          note(`${process.name}: ${what}: the connection is lost`)
          reject(lostConnection())
        }
        after(way(), () => {
          const wasAlive = process.isAlive
          mayCrash(process, `${what}, before`)
          // What a process has sent before it crashed in another place arrives, or does not.
          if (!process.isAlive && (wasAlive || random.chance(0.5))) return
          if (random.chance(faults.lost)) return answer(lose)
          const isLost = random.chance(faults.lost)
          if (trace !== undefined) note(`${process.name}: ${what}`)
          request({
            ok: (result) => answer(isLost ? lose : () => resolve(result)),
            fail: (error) =>
              answer(() => {
                note(`${process.name}: ${what} fails: ${error.message}`)
                reject(error)
              }),
          })
        })
      }),
    sleep: (process, ms) => new Promise((resolve) => after(ms, () => wake(process, resolve))),
    inTime: (process, answer, ms) =>
      Promise.race([
        answer,
        world.sleep(process, ms).then(() => {
          throw lostConnection()
        }),
      ]),
    run: async (isOver) => {
      while (!isOver()) {
        const event = pop(events)
        if (event === undefined) return
        now = event.at
        event.act()
        if (!isAwake) continue
        isAwake = false
        // All that the process does until its next call.
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
  }
  return world
}

const isBefore = (one: Event, other: Event) => one.at < other.at || (one.at === other.at && one.order < other.order)

/** A binary heap: the first event is at its top. */
function push(heap: Event[], event: Event): void {
  let at = heap.length
  heap.push(event)
  while (at > 0) {
    const above = (at - 1) >> 1
    const parent = heap[above]
    if (parent === undefined || !isBefore(event, parent)) break
    heap[at] = parent
    at = above
  }
  heap[at] = event
}

function pop(heap: Event[]): Event | undefined {
  const first = heap[0]
  const last = heap.pop()
  if (first === undefined || last === undefined || heap.length === 0) return first
  let at = 0
  for (;;) {
    let below = 2 * at + 1
    let child = heap[below]
    const right = heap[below + 1]
    if (child === undefined) break
    if (right !== undefined && isBefore(right, child)) {
      child = right
      below += 1
    }
    if (!isBefore(child, last)) break
    heap[at] = child
    at = below
  }
  heap[at] = last
  return first
}
