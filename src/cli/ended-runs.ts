import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { type Client, readAnswer, sendUntilAnswered } from './client.ts'
import { isOver, runSummary } from './runs.ts'

/** The runs that end, one after the other, read from the list of runs through restarts of the service. */

const page = z.object({ results: z.array(z.looseObject(runSummary.shape)) })
type Listed = z.output<typeof page>['results'][number]

const pageSize = 100
/** The most pages that are read to find new runs. */
const mostPages = 10
const waitS = 25
const pauseMs = 500
const awayMs = 600_000

type Options = {
  /** The end, by `performance.now()`. */
  readonly endsAt: number
  readonly onWait: (why: string) => void
  /** Called when there were more new runs than are read. */
  readonly onMissed: () => void
}

/**
 * Yields each run that ends from now on, of those that the caller may see.
 *
 * @throws {Unreachable} when the service is away for too long; @throws {UsageError} when it refuses
 */
export async function* endedRuns(client: Client, { endsAt, onWait, onMissed }: Options): AsyncGenerator<Listed> {
  const read = async (query: Record<string, string>) => {
    const path = `/blueprints/runs/?${new URLSearchParams({ page_size: String(pageSize), ...query })}`
    const answer = await sendUntilAnswered(client, 'GET', path, { withinMs: awayMs, onWait })
    return { runs: readAnswer(client, answer, page).results, revision: answer.headers.get('gatewright-revision') }
  }
  const first = await read({ wait: '0' })
  let { revision } = first
  /** The runs of the last read, and those that had not ended then. */
  let known = new Set(first.runs.map(({ id }) => id))
  const open = new Set((await read({ state: 'queued' })).runs.map(({ id }) => id))
  while (performance.now() < endsAt) {
    const wait = Math.max(0, Math.min(waitS, Math.ceil((endsAt - performance.now()) / 1_000)))
    const newest = await read({ wait: String(wait), ...(revision !== null && { since: revision }) })
    revision = newest.revision
    const looked = [...newest.runs]
    const isNew = ({ id }: Listed) => !known.has(id)
    for (let number = 2; looked.length === (number - 1) * pageSize && looked.every(isNew); number += 1) {
      if (number > mostPages) {
        onMissed()
        break
      }
      looked.push(...(await read({ page: String(number) })).runs)
    }
    const others = open.difference(new Set(looked.map(({ id }) => id)))
    if (others.size > 0) looked.push(...(await read({ id: [...others].slice(0, pageSize).join(',') })).runs)
    const ended = looked.filter((run) => isOver(run) && (isNew(run) || open.has(run.id)))
    yield* ended.toSorted((one, other) => ((one.finished_at ?? '') < (other.finished_at ?? '') ? -1 : 1))
    for (const run of looked) {
      if (isOver(run)) open.delete(run.id)
      else open.add(run.id)
    }
    known = new Set(looked.map(({ id }) => id))
    // The service answers at once where much changes.
    await delay(pauseMs)
  }
}
