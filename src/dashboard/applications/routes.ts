import { z } from 'zod'
import { isApplicationOutside } from '../../apply/outside.ts'
import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { Problem } from '../../errors.ts'
import { requireAccess } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { readApplications } from '../../lists/applications.ts'
import { earlierRun } from '../../lists/earlier-run.ts'
import { queryInteger, queryText } from '../../lists/filters.ts'
import type { ListSpec } from '../../lists/list.ts'
import { comparedName } from '../../names.ts'
import type { Actor } from '../../permissions.ts'
import type { Engine } from '../../plan/engine.ts'
import { mayRollBack } from '../../submissions/access.ts'
import { type HistoryEntry, readHistory } from '../../views/history.ts'
import { differenceOf, reversed } from '../../views/history-difference.ts'
import { readLastChanges } from '../../views/last-changes.ts'
import { readDeletedOutside } from '../../views/outside.ts'
import { applicationPath, applicationsPath, comparePath } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { ifInTime } from '../late.ts'
import { type Compared, comparePage, type State } from './compare-page.ts'
import { applicationPage, applicationsPage, rowsOfPage } from './pages.ts'
import type { Chosen, Timeline } from './timeline.ts'

/** The pages of applications. The declaration of the API's list, and `readHistory`, decide which of them a caller sees. */

const text = queryText(200)
  .transform((sent) => sent.trim())
  .default('')

const listQuery = z.strictObject({
  text,
  owner: text,
  outside: z.enum(['', 'yes']).default(''),
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

const nothing = { entries: [], beside: [], next: null }
const dayMs = 86_400_000
const entriesOfPage = 20
/** The most changes between two states, and of the two. */
const mostCompared = 1_000
/** The most changes that are searched for the last two states: one state has a few changes. */
const mostOfLast = 100
const mostWords = 8

export function applicationPages(
  app: Api,
  { db, engine, runs }: { readonly db: Db; readonly engine: Engine; readonly runs: ListSpec<'Run'> },
): void {
  const { registry } = engine
  const nameOf = (model: string) => registry.byName(model)?.displayName ?? model

  app.get(
    applicationsPath,
    pageRoute({ querystring: listQuery }),
    async ({ actor, query: { outside, ...query } }, reply) => {
      requireAccess(actor, 'view_application')
      const asked = { ...query, outside: outside === 'yes' }
      const terms = asked.text.split(/\s+/u).filter((term) => term !== '')
      const sent = { owner: asked.owner || undefined, changed_outside: asked.outside || undefined }
      const question = { sent, terms: terms.slice(0, mostWords), page: asked.page, size: rowsOfPage }
      const found = await ifInTime(readApplications(db, engine, actor, question))
      const pks = (found?.rows ?? []).map(({ pk }) => pk)
      const changes = await ifInTime(readLastChanges(db, registry, actor, pks))
      const isWhole = asked.outside && asked.text === '' && asked.page === 1
      const deleted = isWhole
        ? await ifInTime(readDeletedOutside(db, registry, actor, asked.owner ? comparedName(asked.owner) : null))
        : undefined
      const shown = { found: found && { ...found, changes }, deleted, nameOf }
      return sendPage(reply, applicationsPage(asked, shown, actor))
    },
  )

  const params = z.object({ slug: queryText() })
  const none = 'There is no such application, and none had this slug, as far as you may see.'

  app.get(
    applicationPath(':slug'),
    pageRoute({ params, querystring: historyQuery }),
    async ({ actor, params, query: { before = null, ...chosen } }, reply) => {
      requireAccess(actor, 'view_application')
      const slug = params.slug.normalize('NFC')
      const one = { sent: { slug }, terms: [], page: 1, size: 1 }
      const outside = { ...one, sent: { slug, changed_outside: true } }
      const [history, found, changed] = await Promise.all([
        inTime(readHistory(db, registry, { slug }, actor, { before, size: entriesOfPage })),
        inTime(readApplications(db, engine, actor, one)),
        ifInTime(readApplications(db, engine, actor, outside)),
      ])
      const [row] = found.rows
      if (history === undefined && row === undefined) throw new Problem('not_found', none)
      const { entries = [], beside = [], next = null } = history ?? {}
      // A deleted row is in no list.
      const isOutside =
        row === undefined
          ? await ifInTime(isApplicationOutside(db, engine, { slug, key: null }, history?.owners ?? null))
          : changed && changed.rows.length > 0
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
    pageRoute({ params, querystring: chosenQuery }),
    async ({ actor, params, query }, reply) => {
      requireAccess(actor, 'view_application')
      const slug = params.slug.normalize('NFC')
      const compared = await inTime(compare(slug, query, actor))
      return sendPage(reply, comparePage(slug, compared, nameOf, actor))
    },
  )

  async function compare(slug: string, chosen: Chosen, actor: Actor): Promise<Compared> {
    const { from, to } = await statesOf(slug, chosen, actor)
    if (from === undefined || to === undefined) return { is: 'alone' }
    const [first, last] = BigInt(from) <= BigInt(to) ? [from, to] : [to, from]
    const read = { before: null, size: mostCompared, first, last }
    const { entries, beside, next } = (await readHistory(db, registry, { slug }, actor, read)) ?? nothing
    if (next !== null) return { is: 'too far', most: mostCompared }
    const stateOf = (state: string): State => {
      const entry = entries[beside.findIndex((each) => each.state === state)]
      if (entry === undefined) throw new Problem('not_found', none)
      return { state, entry }
    }
    const ends = { from: stateOf(from), to: stateOf(to) }
    const difference = differenceOf(entriesAfter(first, { entries, beside }), registry)
    return { is: 'compared', ...ends, difference: first === from ? difference : reversed(difference) }
  }

  /** The chosen states, or else the newest and the one before. */
  async function statesOf(slug: string, { from, to }: Chosen, actor: Actor): Promise<Chosen> {
    if (from !== undefined && to !== undefined) return { from, to }
    const newest = await readHistory(db, registry, { slug }, actor, {
      before: null,
      size: mostOfLast,
      last: to ?? null,
    })
    if (newest === undefined) throw new Problem('not_found', none)
    const states = [...new Set(newest.beside.map(({ state }) => state))]
    if (from !== undefined) return { from, to: states[0] }
    return { from: states[1], to: states[0] }
  }
}

/** Entries from the oldest on; those of one state stay in their order. */
function entriesAfter(first: string, { entries, beside }: Pick<Timeline, 'entries' | 'beside'>): HistoryEntry[] {
  const all = entries.map((entry, index) => ({ entry, state: beside[index]?.state ?? first }))
  const after = all.filter(({ state }) => state !== first)
  return after.toSorted((a, b) => Number(BigInt(a.state) - BigInt(b.state))).map(({ entry }) => entry)
}
