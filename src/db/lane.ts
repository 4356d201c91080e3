import type pg from 'pg'

/**
 * Connections that statements share: each is sent at once, behind those that others are still waiting for, and what is
 * sent in one turn of the event loop leaves in one write. Answers come in the order sent. For short statements that
 * stand for themselves; whoever needs a transaction, or may wait for a lock, takes a connection of his own
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
  const lanes = Array.from({ length: count }, () => openLane(make))
  let turn = 0
  return {
    use: async (work) => {
      turn = (turn + 1) % lanes.length
      const lane = lanes[turn] ?? openLane(make)
      const client = await lane.client()
      try {
        return await work(client)
      } catch (error) {
        if (isUnanswered(error)) giveUp(client)
        throw error
      }
    },
    close: async () => void (await Promise.all(lanes.map((lane) => lane.close()))),
  }
}

type Lane = { client(): Promise<pg.Client>; close(): Promise<void> }

function openLane(make: () => pg.Client): Lane {
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

/** What is sent on a connection in one turn of the event loop leaves in one write. Call it before sending. */
export function sendTogether({ connection: { stream } }: pg.Client | pg.PoolClient): void {
  if (stream.writableCorked > 0) return
  stream.cork()
  // Behind the microtasks: what follows without waiting for an answer, such as the COMMIT, is part of it.
  process.nextTick(() => stream.uncork())
}
