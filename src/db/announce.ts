import { type Statement, sql } from './sql.ts'

/** Something for those who `LISTEN` on a channel. */
export type Announcement = {
  readonly channel: string
  /** Short, and without a comma: what is announced together arrives as one payload, separated by commas. */
  readonly text: string
}

/** @returns what was announced together, from the payload that arrived */
export const textsIn = (payload: string): string[] => payload.split(',')

/** A payload has less than 8 000 bytes. */
const atOnce = 200

/** The statements that announce these, each as many of them as it can. */
export function notifications(announcements: readonly Announcement[]): Statement[] {
  return [...Map.groupBy(announcements, ({ channel }) => channel)].flatMap(([channel, group]) =>
    Array.from({ length: Math.ceil(group.length / atOnce) }, (_, part) => {
      const texts = group.slice(part * atOnce, (part + 1) * atOnce).map(({ text }) => text)
      return sql`SELECT pg_notify(${channel}, ${texts.join(',')})`
    }),
  )
}

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
      for (const statement of notifications(waiting.splice(0))) await send(statement).catch(() => {})
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
