import { z } from 'zod'
import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { Problem } from '../../errors.ts'
import { requireAccess } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { readStates } from '../../lists/application-states.ts'
import { applicationList } from '../../lists/applications.ts'
import { queryText } from '../../lists/filters.ts'
import { findPage, type Request } from '../../lists/list.ts'
import type { ListSpec } from '../../lists/listed.ts'
import { readOwners } from '../../lists/owner-states.ts'
import { findRuns } from '../../lists/runs-of-operators.ts'
import type { Registry } from '../../models/registry.ts'
import { comparedName } from '../../names.ts'
import { type Actor, allowsFor, ownersShown } from '../../permissions.ts'
import { compareAll, isOutside, readStanding, type Standing } from '../../runs/outside.ts'
import { mayRollBack } from '../../submissions/access.ts'
import { applicationView } from '../../views/application.ts'
import { type Recorded, readHistory } from '../../views/history.ts'
import { readLastChanges } from '../../views/last-changes.ts'
import { readUidOf } from '../../views/uid.ts'
import { applicationPath, applicationsPath } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { ifInTime } from '../late.ts'
import { namesOf } from '../words.ts'
import { applicationPage, applicationsPage, applicationsQuery, mostCounted, rowsOfPage } from './pages.ts'

/** The pages of applications. The declaration of the API's list, and `readHistory`, decide which of them a caller sees. */

const historyQuery = z.strictObject({
  before: z
    .string()
    .regex(/^[1-9]\d{0,17}\.\d{1,6}$/)
    .nullable()
    .default(null),
})

const entriesOfPage = 20
const mostWords = 8

export function applicationPages(
  app: Api,
  { db, registry, runs }: { readonly db: Db; readonly registry: Registry; readonly runs: ListSpec<'Run'> },
): void {
  const nameOf = namesOf(registry)
  const view = applicationView(registry.kinds)

  app.get(applicationsPath, pageRoute({ querystring: applicationsQuery }), async ({ actor, query: asked }, reply) => {
    requireAccess(actor, 'view_application')
    const terms = asked.text?.split(/\s+/u) ?? []
    const sent = { owner: asked.owner ?? undefined, state: asked.state === '' ? undefined : asked.state }
    const question = { sent, terms: terms.slice(0, mostWords), page: asked.page, size: rowsOfPage }
    const found = await ifInTime(readApplications(actor, question))
    const rows = found?.rows ?? []
    const [changes, states, teams] = await Promise.all([
      ifInTime(
        readLastChanges(
          db,
          registry,
          actor,
          rows.map(({ pk }) => pk),
        ),
      ),
      ifInTime(readStates(db, { slugs: rows.map(({ slug }) => slug) })),
      asked.owner === null ? [] : ifInTime(readOwners(db, registry, runs, actor, comparedName(asked.owner))),
    ])
    const shown = found && { ...found, changes, states: states ?? new Map() }
    return sendPage(reply, applicationsPage({ asked, found: shown, team: teams?.[0] }, actor))
  })

  /** Compares all applications with their recorded changes. */
  app.post(applicationsPath, pageRoute({}), async ({ log }, reply) => {
    // It goes on when it takes longer than a page waits.
    await ifInTime(compareAll(db, registry, (error) => log.warn({ err: error }, 'applications could not be compared')))
    return reply.redirect(applicationsPath, 303)
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
        inTime(readApplications(actor, one)),
      ])
      const [row] = found.rows
      if (history === undefined && row === undefined) throw new Problem('not_found', none)
      const { entries = [], next = null } = history ?? {}
      const of = row === undefined ? { slug } : { slug: null, key: row.pk }
      const [standing, states] = await Promise.all([
        ifInTime(readStanding(db, registry, of, history?.owners ?? ownersShown(actor))),
        row && ifInTime(readStates(db, { slugs: [slug] })),
      ])
      const isSeen = ({ model, owner, isGone }: Standing) =>
        isGone || allowsFor(actor, `view_${registry.byName(model)?.resource}`, owner)
      const visible = standing?.filter(isSeen) ?? null
      const putBack = visible && isOutside(visible) === true ? await ifInTime(lastDocument(slug, entries, actor)) : null
      const read = { slug, row, state: states?.get(slug), standing: visible, putBack }
      const initialOf = (model: string, field: string) => registry.byName(model)?.fields.get(field)?.initial
      const isFirst = before === null
      return sendPage(reply, applicationPage({ ...read, entries, next, isFirst, nameOf, initialOf }, actor))
    },
  )

  async function readApplications(actor: Actor, request: Request) {
    const { keys, count, isExact } = await findPage(db, applicationList(registry), actor, { mostCounted, ...request })
    const reading = { uidOf: await readUidOf(db), related: true, actor }
    const rows = keys.length === 0 ? [] : (await Array.fromAsync(view.read(db, keys.map(String), reading))).flat()
    return { count, rows, isCut: !isExact }
  }

  /**
   * The newest run that wrote the application, or that found it as its document has it. @returns null when there is none to plan
   * again
   */
  async function lastDocument(slug: string, entries: readonly Recorded[], actor: Actor) {
    const { ids } = await findRuns(db, runs, actor, {
      sent: { application: slug, applied: true, mode: ['apply'] },
      size: 1,
    })
    const select = { id: true, createdAt: true, finishedAt: true, submitterPk: true } as const
    const applied = await db.run.findFirst({ where: { id: { in: ids } }, select })
    const wrote = entries.find(({ run }) => run?.hasDocument === true)
    const isNewer = applied !== null && !(new Date(wrote?.entry.at ?? '') > (applied.finishedAt ?? applied.createdAt))
    const id = isNewer ? applied.id : (wrote?.entry.run ?? null)
    const submitter = isNewer ? applied.submitterPk : (wrote?.run?.submitterPk ?? null)
    return id !== null && mayRollBack(actor, submitter) ? id : null
  }
}
