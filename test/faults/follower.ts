import { setTimeout as delay } from 'node:timers/promises'
import { type EventReader, type Received, readEvents } from '../support/events.ts'
import { until } from '../support/until.ts'
import type { Target } from './clients.ts'

/** A reader of the events of all runs that comes back with the last id, as a browser does. */
export type Follower = {
  /** The ids of runs of which it got this event. */
  runsOf(event: string): Set<string>
  /** The last event of a run that ended. */
  endOf(run: string): Received['data'] | undefined
  stop(): Promise<void>
}

export async function follow({ url, token }: Target): Promise<Follower> {
  const seen: Received[] = []
  let [isOver, lastId] = [false, '']
  let reader: EventReader | undefined
  const path = `${url}/api/v3/blueprints/runs/events/`
  const open = () => readEvents(path, { token, ...(lastId !== '' && { lastEventId: lastId }) }).catch(() => undefined)
  const events = () => [...seen, ...(reader?.events ?? [])]

  async function read(): Promise<void> {
    while (!isOver) {
      reader = await open()
      if (isOver) reader?.close()
      if (reader?.status !== 200) await delay(200)
      await reader?.ended
      seen.push(...(reader?.events ?? []))
      lastId = reader?.lastId() || lastId
      reader = undefined
    }
  }
  const reading = read()
  await until(() => (reader?.lastId() ?? '') !== '', { what: 'the stream of events' })
  return {
    runsOf: (name) => new Set(events().flatMap(({ event, data }) => (event === name ? String(data.id) : []))),
    endOf: (run) => events().findLast(({ event, data }) => event === 'ended' && data.id === run)?.data,
    stop: async () => {
      isOver = true
      reader?.close()
      await reading
    },
  }
}
