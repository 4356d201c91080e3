import { z } from 'zod'
import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { Problem } from '../../errors.ts'
import type { Api } from '../../http/api.ts'
import { earlierRun } from '../../lists/earlier-run.ts'
import { queryInteger } from '../../lists/filters.ts'
import type { ListSpec } from '../../lists/list.ts'
import { objectsOf } from '../../lists/objects-of-run.ts'
import { groupByCause } from '../../lists/run-groups.ts'
import { readRunRows } from '../../lists/run-rows.ts'
import { mostGrouped, readFacts, searchRuns } from '../../lists/run-search.ts'
import type { Actor } from '../../permissions.ts'
import type { Engine } from '../../plan/engine.ts'
import type { ApplyQueue } from '../../queue/backend.ts'
import { progressOf } from '../../queue/enqueue.ts'
import { readPause } from '../../queue/pause.ts'
import { readDocumentDifference } from '../../views/run-differences.ts'
import { readRunDocument, readRunPart } from '../../views/run-parts.ts'
import { differencesPath, documentPath, runPagePath, runsPath } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { ifInTime } from '../late.ts'
import { mostEntries, mostLines } from './changes.ts'
import { differencesPage } from './differences-page.ts'
import { documentPage } from './document-page.ts'
import { readLater } from './later.ts'
import { type Runs, runsPage } from './list-page.ts'
import { type Asked, fields, readQuestion } from './question.ts'
import { runPage } from './run-page.ts'

/** The pages of runs. The declaration of the API's list, and `mayReadRun`, decide which runs a caller sees. */

const params = z.object({ id: z.guid() })
const fromQuery = z.strictObject({ from: queryInteger(0, 1_000_000).default(0) })
const rowsOfPage = 50
const mostLater = 10
/** Milliseconds; a document of many entries is long to open and to print. */
const documentWithinMs = 5_000

type Sources = { readonly db: Db; readonly engine: Engine; readonly queue: ApplyQueue; readonly runs: ListSpec<'Run'> }

export function runPages(app: Api, { db, engine, queue, runs }: Sources): void {
  const { registry } = engine
  const nameOf = (model: string) => registry.byName(model)?.displayName ?? model

  app.get(
    runsPath,
    pageRoute({
      querystring: z.strictObject(
        Object.fromEntries([...fields, 'before'].map((name) => [name, z.unknown().optional()])),
      ),
    }),
    async ({ actor, query }, reply) => {
      const asked = readQuestion(runs, query)
      const isWrong = Object.keys(asked.wrong).length > 0
      const found = isWrong ? null : await ifInTime(find(asked, actor))
      return sendPage(reply.code(isWrong ? 400 : 200), runsPage(asked, found, actor))
    },
  )

  async function find({ question, before, isGrouped }: Asked, actor: Actor): Promise<Runs> {
    if (isGrouped) {
      const { facts, looked } = await readFacts(db, runs, actor, question, mostGrouped + 1)
      const groups = await groupByCause(db, actor, facts.slice(0, mostGrouped))
      return { groups, isAll: facts.length <= mostGrouped, looked }
    }
    const { ids, ...found } = await searchRuns(db, runs, actor, question, { before, size: rowsOfPage })
    return { rows: await readRunRows(db, runs, actor, ids), ...found }
  }

  app.get(
    runPagePath(':id'),
    pageRoute({ params, querystring: fromQuery }),
    async ({ actor, params: { id }, query: { from } }, reply) => {
      const part = { from, most: mostEntries, lines: mostLines }
      const progress = (of: { readonly id: string }, attempt: number) => progressOf(queue, of, attempt)
      const run = await inTime(readRunPart(db, id, actor, part, progress))
      if (run === null) throw noSuchRun()
      const of = { db, registry, runs }
      const later = from > 0 ? [] : await ifInTime(readLater(of, run, actor, mostLater))
      const pause = run.state === 'queued' ? await readPause(queue, db).catch(() => null) : null
      return sendPage(reply, runPage(run, { later, from, pause, nameOf }, actor))
    },
  )

  app.get(
    differencesPath(':id'),
    pageRoute({ params, querystring: fromQuery }),
    async ({ actor, params: { id }, query: { from } }, reply) => {
      const part = { from: 0, most: mostEntries, lines: 0 }
      const run = await inTime(readRunPart(db, id, actor, part, async () => null))
      if (run === null) throw noSuchRun()
      const { slug, title, submitter, created_at } = run
      const objects = objectsOf(run, registry, { withUnchanged: true })
      const before = new Date(created_at)
      const of = { slug, title: title.replace(/^\w+/, 'apply'), submitter, objects, before }
      const earlier = await ifInTime(earlierRun(db, runs, actor, of))
      const found = earlier
        ? await ifInTime(readDocumentDifference(db, engine, { id, earlier: earlier.id }, actor), documentWithinMs)
        : null
      return sendPage(reply, differencesPage({ run, earlier, found, from, nameOf }, actor))
    },
  )

  app.get(
    documentPath(':id'),
    pageRoute({ params, querystring: z.strictObject({ page: queryInteger(1, 1_000_000).default(1) }) }),
    async ({ actor, params: { id }, query }, reply) => {
      const document = await inTime(readRunDocument(db, engine, id, actor), documentWithinMs)
      if (document === null) throw noSuchRun()
      const shown = documentPage(document, query.page, actor)
      if (shown === null) throw new Problem('not_found', 'The document has no such page.')
      return sendPage(reply, shown)
    },
  )
}

const noSuchRun = () =>
  new Problem(
    'not_found',
    'There is no such run, or it is the run of another user and you lack the permission view_run.',
  )
