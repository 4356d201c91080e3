import { z } from 'zod'
import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { Problem } from '../../errors.ts'
import { requireAccess } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { type Html, html } from '../../http/html.ts'
import { queryInteger, queryText } from '../../lists/filters.ts'
import type { ListSpec } from '../../lists/list.ts'
import type { Registry } from '../../models/registry.ts'
import type { Actor } from '../../permissions.ts'
import { mayRollBack } from '../../submissions/access.ts'
import { compare } from '../../views/comparison.ts'
import { readHistory } from '../../views/history.ts'
import { sidesOf } from '../../views/history-sides.ts'
import { readLastChanges } from '../../views/last-changes.ts'
import { isApplicationOutside } from '../../views/outside.ts'
import { applicationPath, applicationsPath, comparePath } from '../addresses.ts'
import { type Compared, comparisonPage } from '../comparison-page.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { ifInTime } from '../late.ts'
import { startOfPart } from '../runs/changes.ts'
import { earlierRun } from '../runs/same-objects.ts'
import { number } from '../words.ts'
import { applicationPage, applicationsPage, rowsOfPage } from './pages.ts'
import { readApplications } from './read.ts'
import { type Chosen, queryOf, stateText, type Timeline } from './timeline.ts'

/** The pages of applications. The declaration of the API's list, and `readHistory`, decide which of them a caller sees. */

const text = queryText(200)
  .transform((sent) => sent.trim())
  .default('')

const listQuery = z.strictObject({
  text,
  owner: text,
  page: queryInteger(1, 1_000_000).default(1),
})

const state = z
  .string()
  .regex(/^[1-9]\d{0,17}$/)
  .optional()
const chosenQuery = z.strictObject({ from: state, to: state })
const historyQuery = chosenQuery.extend({
  before: z
    .string()
    .regex(/^[1-9]\d{0,17}\.\d{1,6}$/)
    .optional(),
})

const dayMs = 86_400_000
const entriesOfPage = 20
/** The most changes between two states, and of the two. */
const mostCompared = 1_000
/** The most changes that are searched for the last two states: one state has a few changes. */
const mostOfLast = 100
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
    async ({ actor, params, query: { before = null, ...chosen } }, reply) => {
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
      const shown = { slug, entries, beside, next, chosen, nameOf }
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

  app.get(
    comparePath(':slug'),
    pageRoute({ params, querystring: chosenQuery.extend({ start: startOfPart }) }),
    async ({ actor, params, query: { start, ...chosen } }, reply) => {
      requireAccess(actor, 'view_application')
      const slug = params.slug.normalize('NFC')
      const { compared, ends } = await inTime(compareStates(slug, chosen, actor))
      const shown = { title: `Two states of ${slug}`, within: applicationsPath, compared, start, nameOf }
      const back = html`<a href="${applicationPath(slug)}${queryOf(ends)}">Back to the application</a>`
      return sendPage(reply, comparisonPage({ ...shown, back, address: `${comparePath(slug)}${queryOf(ends)}` }, actor))
    },
  )

  /** Compares the chosen states: without a choice, the newest and the one before. */
  async function compareStates(slug: string, { from, to }: Chosen, actor: Actor) {
    const isReversed = from !== undefined && to !== undefined && BigInt(from) > BigInt(to)
    const [first = null, last = null] = isReversed ? [to, from] : [from, to]
    const size = from === undefined ? mostOfLast : mostCompared
    const history = await readHistory(db, registry, { slug }, actor, { before: null, size, first, last })
    if (history === undefined) throw new Problem('not_found', none)
    const { beside, next } = history
    const states = [...new Set(beside.map(({ state }) => state))]
    const ends = { from: from ?? states[1], to: to ?? states[0] }
    const why = (compared: string) => ({ ends, compared })
    if (ends.from === undefined || ends.to === undefined)
      return why('There is nothing to compare: its history has one state only.')
    if (from !== undefined && next !== null)
      return why(`More than ${number(size)} changes lie between them: choose two that are nearer.`)
    const entries = history.entries.map((entry, index) => ({ ...entry, state: beside[index]?.state ?? '' }))
    const stateOf = (state: string): Html => {
      const entry = entries.find((each) => each.state === state)
      if (entry === undefined) throw new Problem('not_found', none)
      return stateText(entry)
    }
    const oldest = BigInt(isReversed ? ends.to : ends.from)
    const between = entries
      .filter(({ state }) => BigInt(state) > oldest)
      .toSorted((one, other) => Number(BigInt(one.state) - BigInt(other.state)))
    const { before, after } = sidesOf(between)
    const compared: Compared = {
      from: stateOf(ends.from),
      to: html`${stateOf(ends.to)}. <a href="${comparePath(slug)}${queryOf({ from: ends.to, to: ends.from })}">The other way round</a>`,
      changes: isReversed ? compare(after, before, registry) : compare(before, after, registry),
      unknown: between.filter(({ action, fields }) => fields === null && action !== 'delete').length,
    }
    return { ends, compared }
  }
}
