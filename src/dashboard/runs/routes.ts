import { z } from 'zod'
import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { Problem } from '../../errors.ts'
import type { Api } from '../../http/api.ts'
import { queryInteger } from '../../lists/filters.ts'
import type { ListSpec } from '../../lists/listed.ts'
import { readRunRows } from '../../lists/run-rows.ts'
import { findRuns } from '../../lists/runs-of-operators.ts'
import type { Actor } from '../../permissions.ts'
import type { Engine } from '../../plan/engine.ts'
import { readAtWork } from '../../runs/at-work.ts'
import { type Live, readRun } from '../../views/one-run.ts'
import type { Run } from '../../views/run.ts'
import { documentPath, runPagePath, runsPath } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { ifInTime } from '../late.ts'
import { startOfPart } from './changes.ts'
import { documentPage } from './document-page.ts'
import { groupByCause } from './groups.ts'
import { mostGrouped, type Runs, runsPage } from './list-page.ts'
import { type Asked, fields, readQuestion } from './question.ts'
import { runPage } from './run-page.ts'

/** The pages of runs. The declaration of the API's list, and `mayReadRun`, decide which runs a caller sees. */

const params = z.object({ id: z.guid() })
const partQuery = z.strictObject({ start: startOfPart })
const rowsOfPage = 50
/** Milliseconds; a document of many entries is long to open and to print. */
const documentWithinMs = 5_000

type Sources = { readonly db: Db; readonly engine: Engine; readonly live: Live; readonly runs: ListSpec<'Run'> }

export function runPages(app: Api, { db, engine, live, runs }: Sources): void {
  const { registry } = engine

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

  async function find({ filters: sent, terms, before, isGrouped }: Asked, actor: Actor): Promise<Runs> {
    const behind = isGrouped || before === null ? {} : { behind: [new Date(before.at), before.id] }
    const most = isGrouped ? mostGrouped : rowsOfPage
    const { ids, count } = await findRuns(db, runs, actor, { sent, terms, size: most + 1, ...behind })
    const rows = await readRunRows(db, runs, actor, ids.slice(0, most))
    if (isGrouped) return { groups: groupByCause(rows), isAll: ids.length <= most }
    const last = ids.length > most ? rows.at(-1) : undefined
    return { rows, count, next: last === undefined ? null : { at: Date.parse(last.created_at), id: last.id } }
  }

  app.get(
    runPagePath(':id'),
    pageRoute({ params, querystring: partQuery }),
    async ({ actor, params: { id }, query: { start } }, reply) => {
      const run = await readOne(id, actor)
      const atWork = run.finished_at === null ? await ifInTime(readAtWork(db, id)) : null
      return sendPage(reply, runPage(run, { start, registry, atWork: atWork?.[0] }, actor))
    },
  )

  /** @throws {Problem} `not_found` also for a run that the caller may not see */
  async function readOne(id: string, actor: Actor, withBlueprint = false): Promise<Run> {
    const reading = readRun(db, engine, { id, withBlueprint }, actor, live)
    return await inTime(reading, withBlueprint ? documentWithinMs : undefined)
  }

  app.get(
    documentPath(':id'),
    pageRoute({ params, querystring: z.strictObject({ page: queryInteger(1, 1_000_000).default(1) }) }),
    async ({ actor, params: { id }, query }, reply) => {
      const shown = documentPage(await readOne(id, actor, true), query.page, actor)
      if (shown === null) throw new Problem('not_found', 'The document has no such page.')
      return sendPage(reply, shown)
    },
  )
}
