import type pg from 'pg'

/**
 * Connections that statements share: each is sent at once, behind those that others are still waiting for, and what is
 * sent in one turn of the event loop leaves in one write. Answers come in the order sent. For short statements that
 * stand for themselves; whoever needs a transaction, or may wait for a lock, takes a connection of his own
 * (docs/adr/0008-statements-share-round-trips.md).
 */
export type Lanes = {
  /** @returns a connection that is open, or was just opened */
  next(): Promise<pg.Client>
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
    next: () => {
      turn = (turn + 1) % lanes.length
      return (lanes[turn] ?? openLane(make)).client()
    },
    close: async () => void (await Promise.all(lanes.map((lane) => lane.close()))),
  }
}

function openLane(make: () => pg.Client): { client(): Promise<pg.Client>; close(): Promise<void> } {
  let current: Promise<pg.Client> | undefined
  async function open(): Promise<pg.Client> {
    const client = make()
    // Lost: whoever waits is told by his own statement, and the next one opens another.
    const lose = () => {
      current = undefined
    }
    client.on('error', lose)
    client.on('end', lose)
    await client.connect()
    return client
  }
  return {
    client: () => {
      current ??= open().catch((error: unknown) => {
        current = undefined
        throw error
      })
      return current
    },
    close: async () => {
      const client = await current?.catch(() => undefined)
      current = undefined
      await client?.end()
    },
  }
}

/** What is sent on a connection in one turn of the event loop leaves in one write. Call it before sending. */
export function sendTogether({ connection: { stream } }: pg.Client | pg.PoolClient): void {
  if (stream.writableCorked > 0) return
  stream.cork()
  // Behind the microtasks: what follows without waiting for an answer, such as the COMMIT, is part of it.
  process.nextTick(() => stream.uncork())
}
