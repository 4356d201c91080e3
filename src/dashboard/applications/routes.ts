import { z } from 'zod'
import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { Problem } from '../../errors.ts'
import { requireAccess } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { queryInteger, queryText } from '../../lists/filters.ts'
import type { ListSpec } from '../../lists/list.ts'
import type { Registry } from '../../models/registry.ts'
import type { Actor } from '../../permissions.ts'
import { mayRollBack } from '../../submissions/access.ts'
import { readHistory } from '../../views/history.ts'
import { readLastChanges } from '../../views/last-changes.ts'
import { isApplicationOutside } from '../../views/outside.ts'
import { applicationPath, applicationsPath } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { ifInTime } from '../late.ts'
import { earlierRun } from '../runs/same-objects.ts'
import { applicationPage, applicationsPage, rowsOfPage } from './pages.ts'
import { readApplications } from './read.ts'
import type { Timeline } from './timeline.ts'

/** The pages of applications. The declaration of the API's list, and `readHistory`, decide which of them a caller sees. */

const text = queryText(200)
  .transform((sent) => sent.trim())
  .default('')

const listQuery = z.strictObject({
  text,
  owner: text,
  page: queryInteger(1, 1_000_000).default(1),
})

const historyQuery = z.strictObject({
  before: z
    .string()
    .regex(/^[1-9]\d{0,17}\.\d{1,6}$/)
    .nullable()
    .default(null),
})

const dayMs = 86_400_000
const entriesOfPage = 20
const mostWords = 8

export function applicationPages(
  app: Api,
  { db, registry, runs }: { readonly db: Db; readonly registry: Registry; readonly runs: ListSpec<'Run'> },
): void {
  const nameOf = (model: string) => registry.byName(model)?.displayName ?? model

  app.get(applicationsPath, pageRoute({ querystring: listQuery }), async ({ actor, query: asked }, reply) => {
    requireAccess(actor, 'view_application')
    const terms = asked.text.split(/\s+/u).filter((term) => term !== '')
    const sent = { owner: asked.owner || undefined }
    const question = { sent, terms: terms.slice(0, mostWords), page: asked.page, size: rowsOfPage }
    const found = await ifInTime(readApplications(db, registry, actor, question))
    const pks = (found?.rows ?? []).map(({ pk }) => pk)
    const changes = await ifInTime(readLastChanges(db, registry, actor, pks))
    return sendPage(reply, applicationsPage(asked, found && { ...found, changes }, actor))
  })

  const params = z.object({ slug: queryText() })
  const none = 'There is no such application, and none had this slug, as far as you may see.'

  app.get(
    applicationPath(':slug'),
    pageRoute({ params, querystring: historyQuery }),
    async ({ actor, params, query: { before } }, reply) => {
      requireAccess(actor, 'view_application')
      const slug = params.slug.normalize('NFC')
      const one = { sent: { slug }, terms: [], page: 1, size: 1 }
      const [history, found] = await Promise.all([
        inTime(readHistory(db, registry, { slug }, actor, { before, size: entriesOfPage })),
        inTime(readApplications(db, registry, actor, one)),
      ])
      const [row] = found.rows
      if (history === undefined && row === undefined) throw new Problem('not_found', none)
      const { entries = [], beside = [], next = null } = history ?? {}
      const of = row === undefined ? { slug } : { slug: null, key: row.pk }
      const isOutside = history && (await ifInTime(isApplicationOutside(db, registry, of, history.owners)))
      const putBack = isOutside === true ? await ifInTime(lastDocument(slug, { entries, beside }, actor)) : null
      const shown = { entries, beside, next, nameOf }
      return sendPage(
        reply,
        applicationPage({ slug, row, isOutside, putBack, history: shown, isFirst: before === null }, actor),
      )
    },
  )

  /**
   * The newest run that wrote the application, or that found it as its document has it. @returns null when there is none to plan
   * again
   */
  async function lastDocument(slug: string, { entries, beside }: Pick<Timeline, 'entries' | 'beside'>, actor: Actor) {
    const of = { slug, title: '', submitter: null, objects: [], before: new Date(Date.now() + dayMs) }
    const applied = await earlierRun(db, runs, actor, of)
    const wrote = beside.findIndex(({ run }) => run?.hasDocument === true)
    const { run = null, at = '' } = entries[wrote] ?? {}
    const isNewer = applied !== undefined && !(new Date(at) > applied.endedAt)
    const id = isNewer ? applied.id : run
    const submitter = isNewer ? applied.submitter : (beside[wrote]?.run?.submitterPk ?? null)
    return id !== null && mayRollBack(actor, submitter) ? id : null
  }
}
