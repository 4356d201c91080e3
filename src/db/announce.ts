import { type Statement, sql } from './sql.ts'

/** Something for those who `LISTEN` on a channel. */
export type Announcement = {
  readonly channel: string
  /** Short, and without a comma: what is announced together arrives as one payload, separated by commas. */
  readonly text: string
}

export const notify = (channel: string, texts: readonly string[]): Statement =>
  sql`SELECT pg_notify(${channel}, ${texts.join(',')})`

/** A payload has less than 8 000 bytes. */
const atOnce = 200

export type Announcer = {
  announce(one: Announcement): void
  /** Waits until what was announced has left. */
  close(): Promise<void>
}

/**
 * Announces what is committed, and together what comes while an announcement is on its way.
 *
 * @param send may fail: what is announced may get lost
 */
export function openAnnouncer(send: (statement: Statement) => Promise<unknown>): Announcer {
  const waiting: Announcement[] = []
  let sending: Promise<void> | undefined
  async function sendAll(): Promise<void> {
    while (waiting.length > 0) {
      for (const [channel, group] of Map.groupBy(waiting.splice(0, atOnce), (one) => one.channel)) {
        const texts = group.map(({ text }) => text)
        await send(notify(channel, texts)).catch(() => {})
      }
    }
    sending = undefined
  }
  return {
    announce: (one) => {
      waiting.push(one)
      sending ??= sendAll()
    },
    close: async () => sending,
  }
}
