import type pg from 'pg'

/**
 * Connections that statements share: each is sent behind those that others are still waiting for, and what is sent in
 * one turn of the event loop leaves in one write. Answers come in the order sent. For short statements that stand for
 * themselves; whoever needs a transaction, or may wait for a lock, takes a connection of his own
 * (docs/adr/0008-statements-share-round-trips.md).
 */
export type Lanes = {
  /** Runs `work` on a connection that others use too; one that fails to answer in time is given up for all of them. */
  use<Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/**
 * @param make a connection that is not open yet
 * @param count connections at most, each opened when it is first needed, and again after it was lost
 */
export function openLanes(make: () => pg.Client, count: number): Lanes {
  const first = openLane(make)
  const lanes = [first, ...Array.from({ length: count - 1 }, () => openLane(make))]
  return {
    use: async (work) => {
      // All on one, as a rule: what is sent together costs less, for both ends. Not behind what takes long, though.
      const lane = first.silentMs() < patienceMs ? first : lanes.reduce(quicker)
      // It counts from here on: one that still connects answers nothing either.
      lane.asks()
      try {
        return await workOn(await lane.client(), work)
      } finally {
        lane.answers()
      }
    },
    close: async () => void (await Promise.all(lanes.map((lane) => lane.close()))),
  }
}

async function workOn<Result>(client: pg.Client, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  try {
    return await work(client)
  } catch (error) {
    if (isUnanswered(error)) giveUp(client)
    throw error
  }
}

/** Of a lane that has answered nothing for so long, while it is asked something, others do not expect an answer soon. */
const patienceMs = 20

type Lane = {
  client(): Promise<pg.Client>
  asks(): void
  answers(): void
  /** For how long somebody has waited without anything being answered. */
  silentMs(): number
  close(): Promise<void>
}

const quicker = (one: Lane, other: Lane): Lane => (other.silentMs() < one.silentMs() ? other : one)

function openLane(make: () => pg.Client): Lane {
  let waiting = 0
  let heardAt = 0
  let current: Promise<pg.Client> | undefined
  function open(): Promise<pg.Client> {
    const client = make()
    const opened = client.connect().then(() => client)
    // Lost: whoever waits is told by his own statement, and the next one opens another.
    const lose = () => {
      if (current === opened) current = undefined
    }
    client.on('error', lose)
    client.on('end', lose)
    opened.catch(lose)
    return opened
  }
  return {
    client: () => {
      current ??= open()
      return current
    },
    asks: () => {
      if (waiting === 0) heardAt = performance.now()
      waiting += 1
    },
    answers: () => {
      waiting -= 1
      heardAt = performance.now()
    },
    silentMs: () => (waiting === 0 ? 0 : performance.now() - heardAt),
    close: async () => {
      const client = await current?.catch(() => undefined)
      current = undefined
      await client?.end()
    },
  }
}

// pg gives this error no code.
const isUnanswered = (error: unknown) => error instanceof Error && error.message === 'Query read timeout'

const giveUp = ({ connection: { stream } }: pg.Client) => stream.destroy()

/** When what was sent leaves: `process.nextTick`, `setImmediate`. */
export type Later = (write: () => void) => void

/** What is sent on a connection from now on leaves in one write. Call it before sending. */
export function sendTogether(
  { connection: { stream } }: pg.Client | pg.PoolClient,
  // Behind the microtasks: what follows without waiting for an answer, such as the COMMIT, is part of it.
  later: Later = process.nextTick,
): void {
  if (stream.writableCorked > 0) return
  stream.cork()
  later(() => stream.uncork())
}
