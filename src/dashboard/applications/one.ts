import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { ifInTime, inTime } from '../../db/in-time.ts'
import { Problem } from '../../errors.ts'
import { requireAccess } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { type Html, html } from '../../http/html.ts'
import { compared, readStates, readWaitingRun } from '../../lists/application-states.ts'
import { type Consumer, readConsumers } from '../../lists/consumers.ts'
import { queryText } from '../../lists/filters.ts'
import { readRunRows } from '../../lists/run-rows.ts'
import { findRuns } from '../../lists/runs-of-operators.ts'
import type { Model } from '../../models/define.ts'
import type { Registry } from '../../models/registry.ts'
import { type Actor, allowsFor, ownersShown } from '../../permissions.ts'
import { isOutside, readStanding, type Standing } from '../../runs/outside.ts'
import { mayRollBack } from '../../submissions/access.ts'
import { type HistoryEntry, type Recorded, readHistory } from '../../views/history.ts'
import { readKeyNames } from '../../views/key-names.ts'
import { applicationPath, applicationsPath, rollBackPath, runPagePath, runsPath } from '../addresses.ts'
import { sentKey } from '../filter-fields.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { fieldList, partsOf } from '../runs/changes.ts'
import { runTable } from '../runs/tables.ts'
import type { Sources } from '../sources.ts'
import { factList, jobDetails, moves, table } from '../table.ts'
import {
  count,
  duration,
  mark,
  named,
  namesOf,
  nameText,
  notKnown,
  number,
  shortId,
  shortTime,
  type Tone,
} from '../words.ts'
import { type ApplicationRow, openApplications, ownerLink, providerText, stateText } from './states.ts'

/**
 * /admin/applications/{slug}/: the fields of an application, and what was done to it. The declaration of the API's list, and
 * `readHistory`, decide which applications a caller sees.
 */

const params = z.object({ slug: queryText() })
const historyQuery = z.strictObject({ before: sentKey(/^[1-9]\d{0,17}\.\d{1,6}$/) })
const entriesOfPage = 20
const runsOfPage = 5
const none = 'There is no such application, and none had this slug, as far as you may see.'

export function applicationPage(app: Api, sources: Sources): void {
  const { db, registry, runs } = sources
  const read = openApplications(sources)
  app.get(
    applicationPath(':slug'),
    pageRoute({ params, querystring: historyQuery }),
    async ({ actor, params, query: { before } }, reply) => {
      requireAccess(actor, 'view_application')
      const slug = params.slug.normalize('NFC')
      const [history, found] = await Promise.all([
        inTime(readHistory(db, registry, { slug }, actor, { before, size: entriesOfPage })),
        inTime(read(actor, { sent: { slug }, terms: [], page: 1, size: 1 })),
      ])
      const [row] = found.rows
      const missing = row === undefined ? await inTime(runsNaming(slug, actor)) : []
      if (history === undefined && row === undefined && missing.length === 0) throw new Problem('not_found', none)
      const { entries = [], next = null } = history ?? {}
      const of = row === undefined ? { slug } : { slug: null, key: row.pk }
      const [standing, states, consumers] = await Promise.all([
        ifInTime(readStanding(db, registry, of, history?.owners ?? ownersShown(actor))),
        row && ifInTime(readStates(db, runs, actor, { slugs: [slug] })),
        row && ifInTime(readConsumers(db, registry, actor, row.pk)),
      ])
      const isSeen = ({ model, owner, isGone }: Standing) =>
        isGone || allowsFor(actor, `view_${registry.byName(model)?.resource}`, owner)
      const visible = standing?.filter(isSeen) ?? null
      const isChanged = standing !== null && isOutside(standing) === true
      const shown = [
        ...(visible ?? []).map(({ model, values: fields }) => ({ model, fields })),
        ...entries.map(({ entry }) => entry),
      ]
      const withNames = (await ifInTime(readKeyNames(db, registry, actor, shown))) ?? (({ fields }) => fields)
      const putBack = isChanged ? await ifInTime(lastDocument(slug, entries, actor)) : null
      const isFirst = before === null
      const stored = states?.get(slug)
      const state = stored && standing ? compared(stored, standing) : stored
      const isWaiting = state?.state === 'waiting'
      const runsOfIt = isWaiting ? await inTime(runsNaming(slug, actor)) : missing
      const content = html`${row === undefined && html`<div class="summary bad"><p>${history === undefined ? html`${mark('bad', 'not there')} <span class="says">There is no application of this slug, as far as you may see: the runs below name it.</span>` : html`${mark('off', 'gone')} <span class="says">There is no application of this slug now: it was deleted or renamed.</span>`}</p></div>`}
${state?.state === 'failing' && html`<div class="summary bad"><p>${stateText(state)}</p></div>`}
${isWaiting && html`<div class="summary"><p>${stateText(state)} <span class="says">A run that names it has not ended.</span></p></div>`}
${runsOfIt.length > 0 && runTable('The last runs that name it', runsOfIt)}
${
  isChanged &&
  html`<div class="summary warn"><p>${mark('warn', 'changed outside')} <span class="says">It, or its provider, is not as its recorded changes left it.</span></p>
${putBack !== null && html`<p><a href="${rollBackPath(putBack)}">Plan its last document again</a>: what it would put back.</p>`}</div>`
}
<div class="columns${isFirst && row !== undefined && ' aside'}">
${isFirst && row !== undefined && html`<section><h2>As it stands</h2>${facts(row, stateText(state), consumers ?? [])}${visible === null ? notKnown() : visible.map((each) => fieldsOf(each, registry, withNames))}</section>`}
<section><h2>What was done to it and to its providers</h2>
${entries.length === 0 ? html`<p>Nothing is recorded.</p>` : timeline(entries, registry, actor, withNames)}
${moves({
  'The newest': !isFirst && applicationPath(slug),
  Older: next !== null && `${applicationPath(slug)}?before=${next}`,
})}</section>
</div>`
      return sendPage(reply, { title: row?.name ?? slug, within: applicationsPath, isLive: isFirst, content })
    },
  )

  /** The newest runs that name a slug, and the documents that it waits for and that made it fail. */
  async function runsNaming(slug: string, actor: Actor) {
    const [{ ids }, state, waiting] = await Promise.all([
      findRuns(db, runs, actor, { sent: { application: slug, mode: ['apply'] }, size: runsOfPage }),
      db.applicationState.findUnique({ where: { slug } }),
      readWaitingRun(db, slug),
    ])
    return readRunRows(db, runs, actor, [...new Set([waiting ?? [], ids, state?.failingRun ?? []].flat())])
  }

  /**
   * The newest run that wrote the application, or that found it as its document has it. @returns null when there is none to plan
   * again
   */
  async function lastDocument(slug: string, entries: readonly Recorded[], actor: Actor) {
    const sent = { application: slug, applied: true, mode: ['apply'] }
    const { ids } = await findRuns(db, runs, actor, { sent, size: 1 })
    const wrote = entries.find(({ run }) => run?.hasDocument === true)?.entry.run ?? []
    const last = await db.run.findFirst({
      where: { id: { in: [wrote, ids].flat() } },
      select: { id: true, submitterPk: true },
      orderBy: { finishedAt: 'desc' },
    })
    return last !== null && mayRollBack(actor, last.submitterPk) ? last.id : null
  }
}

const facts = (row: ApplicationRow, state: Html, consumers: readonly Consumer[]): Html =>
  factList([
    ['State', state],
    ['Slug', named(row.slug)],
    ['Provider', providerText(row)],
    ['Backchannel', row.backchannel_providers.length > 0 && `${number(row.backchannel_providers.length)} providers`],
    ['Owner', row.owner === null ? 'none' : ownerLink(row.owner)],
    ['Read by', consumers.length > 0 && consumers.map((each) => html`<div>${consumerText(each)}</div>`)],
    ['Made by', row.created_by_name && nameText(row.created_by_name)],
    [
      'Runs',
      html`<a href="${runsPath}?period=month&amp;object=application%3A${encodeURIComponent(row.slug)}">that changed it, in the last 30 days</a>`,
    ],
  ])

/** A server asks again after 30 s at most. */
const silentMs = 60_000

/** `sign-in-1 2 s behind`, and where it is found */
function consumerText({ name, issuer, behind_ms: behind, silent_ms: silent }: Consumer): Html {
  const state =
    behind === null || silent === null
      ? mark('off', 'does not follow changes')
      : silent > silentMs
        ? mark('warn', `last heard ${duration(silent)} ago`)
        : behind > 0
          ? mark('open', `${duration(behind)} behind`)
          : mark('good', 'up to date')
  return html`${name === null ? 'a user who is not shown' : named(name)} ${state}${issuer !== null && html`<br><span class="quiet">${nameText(issuer)}</span>`}`
}

type WithNames = Awaited<ReturnType<typeof readKeyNames>>

/** The fields of the application, or of its provider: what was changed outside first, what has its default folded. */
function fieldsOf({ model, values, outside }: Standing, registry: Registry, withNames: WithNames): Html {
  const { fields, displayName = model } = registry.byName(model) ?? {}
  const initialOf = (name: string) => fields?.get(name)?.initial
  const changed = Object.entries(outside ?? {})
  const others = Object.entries(values).filter(([name]) => !Object.hasOwn(outside ?? {}, name))
  const { usual = [], set = [] } = Object.groupBy(others, ([name, value]) =>
    isDeepStrictEqual(value, initialOf(name) ?? null) ? 'usual' : 'set',
  )
  const listed = (some: typeof others) =>
    fieldList(
      withNames({ model, fields: Object.fromEntries(some.map(([name, to]) => [name, { from: null, to }])) }),
      true,
    )
  return html`<h3>${displayName}</h3>
${changed.length > 0 && html`<p>${mark('warn', 'changed outside')}, from what was recorded to what is there:</p>${fieldList(withNames({ model, fields: Object.fromEntries(changed) }), false)}`}
${listed(set)}
${usual.length > 0 && html`<details id="usual-${model}"><summary>${count(usual.length, 'field')} with the default</summary>${listed(usual)}</details>`}`
}

const actions: Readonly<Record<HistoryEntry['action'], readonly [Tone, string]>> = {
  create: ['good', 'created'],
  update: ['changed', 'changed'],
  delete: ['bad', 'deleted'],
}

const timeline = (entries: readonly Recorded[], registry: Registry, actor: Actor, withNames: WithNames): Html =>
  table(
    'What was done',
    entries,
    {
      At: ['plain', (each) => whenOf(each, actor)],
      What: [
        'text',
        ({ entry: { action, model, name, was, owner, pipeline }, cursor }) =>
          html`${mark(...actions[action])}<br>${namesOf(registry)(model)} ${named(nameText(name))}${was !== null && html`, was ${named(nameText(was))}`}${owner !== null && html`<br><span class="quiet">owner ${named(nameText(owner))}</span>`}${pipeline !== null && jobDetails(cursor, pipeline)}`,
      ],
      Who: [
        'name',
        ({ entry: { user, real_user } }) =>
          html`${nameText(user?.username ?? 'not shown')}${real_user !== null && `, in truth ${nameText(real_user.username)}`}`,
      ],
      'Fields, from -> to': [
        'text',
        ({ entry, cursor }) => {
          const fields = withNames(entry)
          return fields === null
            ? html`<span class="quiet">not kept</span>`
            : changedFields(cursor, fields, entry.action, registry.byName(entry.model))
        },
      ],
    },
    { idOf: ({ cursor }) => `change-${cursor}` },
  )

function whenOf({ entry: { at, run }, run: former }: Recorded, actor: Actor): Html {
  const mayReturn = former?.hasDocument === true && mayRollBack(actor, former.submitterPk)
  return html`${shortTime(new Date(at))}${run !== null && html`<br><a href="${runPagePath(run)}">${shortId(run)}</a><br><a href="${runPagePath(run)}#changes">compare with before</a>${mayReturn && html`<br><a href="${rollBackPath(run)}">roll back to this</a>`}`}`
}

type Changed = NonNullable<HistoryEntry['fields']>

/** The fields of a change. Those of a new object are folded: it may have many. */
function changedFields(cursor: string, fields: Changed, action: HistoryEntry['action'], model: Model | undefined) {
  if (action !== 'create') return fieldList(fields, false)
  const { shown, defaults } = partsOf(fields, model)
  return html`<details id="fields-${cursor}"><summary>${count(shown.length, 'field')}${defaults > 0 && ` and ${count(defaults, 'default')}`}</summary>${fieldList(fields, true, model)}</details>`
}
