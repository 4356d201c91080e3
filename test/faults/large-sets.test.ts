import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { aFlow, needs, type Running, rows, run, sql, until } from '../support/kit.ts'
import { recordCalls, recordRecovery } from './record.ts'
import { blueprintsPath, type Got, runOf, send } from './requests.ts'
import { openStand, type Stand } from './stand.ts'

/**
 * Two sets of 4 000 entries that write the same rows in opposite orders, and each process is killed in the middle of them. A
 * set is there as a whole, or not at all.
 */

/** The worker alone checks more than 2 000: the API answers at once, and reads of it show the progress. */
const entries = 4_000
/** The entries of each set alone, with names of its own. */
const own = 100
const settledWithinMs = 10_000
/** Each kill comes so much later in the middle of the sets. */
const laterMs = 300

const flow = (slug: string, title: string) => aFlow(slug, { name: 'Many', title, designation: 'recovery' })
const range = (length: number) => Array.from({ length }, (_, index) => index)

/** @param title of all of its rows, which tells which set wrote them */
function set(title: string, isReversed: boolean) {
  const shared = range(entries - own).map((index) => flow(`shared-${index}`, title))
  const alone = range(own).map((index) => flow(`${title}-${index}`, title))
  const all = [...shared, ...alone]
  return { version: 1, metadata: { name: title }, entries: isReversed ? all.reverse() : all }
}

/** Waits until the worker writes one of them. */
const untilWorking = ({ db }: Stand): Promise<unknown> =>
  until('the worker to write', async () => {
    const [row] = await rows<{ writing: number }>(
      db,
      sql`SELECT count(*) AS writing FROM pg_stat_activity
          WHERE application_name = 'gatewright-worker' AND backend_xid IS NOT NULL`,
    )
    return row !== undefined && row.writing > 0
  })

type Seen = { readonly attempts: number; readonly hasEnded: boolean; readonly done: number | null }

/** Reads a run until it has ended. @returns all that was seen of it */
async function follow(stand: Stand, id: string, isOver: () => boolean): Promise<Seen[]> {
  const seen: Seen[] = []
  while (!isOver()) {
    const { status, text } = await send(stand, 'GET', `${blueprintsPath}runs/${id}/?include_blueprint=false`)
    if (status === 200) {
      const { attempts, state, progress } = JSON.parse(text)
      const hasEnded = state !== 'queued' && state !== 'running'
      seen.push({ attempts, hasEnded, done: progress?.done ?? null })
      if (hasEnded) return seen
    }
    await delay(50)
  }
  return seen
}

/** An attempt begins at the first entry, and begins again once when its transaction was lost: one part is killed. */
function goesBack(seen: readonly Seen[]): string[] {
  const byAttempt = Map.groupBy(seen, ({ attempts }) => attempts)
  const inOrder = seen.every(({ attempts }, index) => attempts >= (seen[index - 1]?.attempts ?? 0))
  return [
    ...(inOrder ? [] : ['its number of attempts goes back']),
    ...[...byAttempt].flatMap(([attempt, each]) => {
      const done = each.flatMap(({ done }) => done ?? [])
      const backwards = done.filter((count, index) => count < (done[index - 1] ?? 0)).length
      return backwards > 1 ? [`the progress of attempt ${attempt} goes back: ${done.join(', ')}`] : []
    }),
  ]
}

describe.runIf(needs('redis-server'))('queue on Redis', () => {
  test(`two sets of ${entries} entries in opposite orders, and kills of every process: whole or absent, and settled 10 s later than without`, {
    timeout: 240_000,
  }, async () => {
    const stand = await openStand('redis')
    let worker = await stand.startWorker()
    let api: Running = stand.api
    const got: Got[] = []
    const submit = async (title: string, isReversed: boolean) => {
      const body = set(title, isReversed)
      const answer = await send(stand, 'PUT', blueprintsPath, { headers: { prefer: 'respond-async' }, body })
      expect(answer.status, answer.text).toBe(202)
      got.push(answer)
      return runOf(answer)
    }
    const kills: Readonly<Record<string, () => Promise<unknown>>> = {
      nothing: async () => {},
      'the worker': async () => {
        await worker.kill()
        worker = await stand.startWorker()
      },
      'the API': async () => {
        await api.kill()
        const next = run('src/server.ts', { env: stand.env })
        onTestFinished(async () => void (await next.kill()))
        api = next
        await api.line(/"msg":"serving"/, { withinMs: 20_000 })
      },
      PostgreSQL: async () => {
        await stand.postgres.stop('immediate')
        await stand.postgres.start()
      },
      Redis: async () => {
        await stand.redis?.kill()
        await stand.redis?.start()
      },
    }
    const complaints: string[] = []
    const settledMs: number[] = []
    /** What both take when nothing is killed: this machine may be slow. */
    let undisturbedMs = 0
    for (const [index, [victim, kill]] of Object.entries(kills).entries()) {
      const titles = [`one-${index}`, `two-${index}`] as const
      const ids = await Promise.all([submit(titles[0], false), submit(titles[1], true)])
      let over = false
      const following = ids.map((id) => follow(stand, id, () => over))
      await untilWorking(stand)
      await delay(index * laterMs)
      await kill()
      const from = performance.now()
      const ended = () => stand.db.run.count({ where: { id: { in: ids }, state: { not: 'queued' } } })
      await until(`both to end after a kill of ${victim}`, async () => (await ended()) === 2, { withinMs: 60_000 })
      const ms = performance.now() - from
      if (victim === 'nothing') undisturbedMs = ms
      else settledMs.push(ms)
      const seen = await Promise.all(following)
      over = true
      const runs = await stand.db.run.findMany({ where: { id: { in: ids } }, orderBy: { finishedAt: 'asc' } })
      console.log(
        `${victim} killed: ${runs.map(({ title, state, applied, attempts }) => `${title} ${state} ${applied} ${attempts}`).join(', ')}, settled after ${Math.round(ms)} ms; progress was seen ${seen.flat().filter(({ done }) => done !== null).length} times`,
      )
      complaints.push(...seen.flatMap(goesBack).map((each) => `${victim}: ${each}`))
      for (const { id, state, applied } of runs) {
        const title = titles[ids.indexOf(id)] ?? expect.fail(id)
        const there = await stand.db.flow.count({ where: { slug: { startsWith: `${title}-` }, title } })
        if (there !== (applied ? own : 0))
          complaints.push(`${victim}: ${title} (${state}) is there by ${there} of ${own}`)
      }
      const last = runs.findLast(({ applied }) => applied)
      const lastTitle = last && titles[ids.indexOf(last.id)]
      const shared = await stand.db.flow.groupBy({
        by: ['title'],
        where: { slug: { startsWith: 'shared-' } },
        _count: true,
      })
      if (
        lastTitle !== undefined &&
        (shared.length !== 1 || shared[0]?.title !== lastTitle || shared[0]._count !== entries - own)
      )
        complaints.push(`${victim}: the rows of both are ${JSON.stringify(shared)}, and ${lastTitle} was last`)
      complaints.push(
        ...runs.filter(({ applied }) => applied !== true).map(({ title, state }) => `${victim}: ${title} ${state}`),
      )
    }
    recordCalls(got, { half: complaints.length })
    recordRecovery(Math.max(...settledMs))
    expect(complaints).toEqual([])
    expect(Math.max(...settledMs)).toBeLessThan(settledWithinMs + undisturbedMs)
    await Promise.all([worker.stop(), ...(api === stand.api ? [] : [api.stop()])])
  })
})
