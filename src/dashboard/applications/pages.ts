import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { type Html, type HtmlValue, html } from '../../http/html.ts'
import { type ApplicationState, states } from '../../lists/application-states.ts'
import { queryInteger } from '../../lists/filters.ts'
import type { OwnerStates } from '../../lists/owner-states.ts'
import { type Actor, allows } from '../../permissions.ts'
import { isOutside, type Standing } from '../../runs/outside.ts'
import { mayRollBack } from '../../submissions/access.ts'
import type { applicationView } from '../../views/application.ts'
import type { HistoryEntry, Recorded } from '../../views/history.ts'
import type { LastChange } from '../../views/last-changes.ts'
import { applicationPath, applicationsPath, rollBackPath, runPagePath, runsPath, withQuery } from '../addresses.ts'
import { choiceField, sentText, textField } from '../filter-fields.ts'
import { page } from '../frame.ts'
import { fieldList } from '../runs/changes.ts'
import { factList, moves, table } from '../table.ts'
import { count, type Look, mark, nameText, notKnown, number, shortId, shortTime, titleText } from '../words.ts'
import { stateText, stateWords, teamTable } from './states.ts'

/** /admin/applications/: the applications with their states and owners; and for each, its fields and what was done to it. */

export const applicationsQuery = z.strictObject({
  text: sentText,
  owner: sentText,
  state: z.enum(['', ...states]).default(''),
  page: queryInteger(1, 1_000_000).default(1),
})
type Question = z.output<typeof applicationsQuery>

export const rowsOfPage = 50
/** The pages count no further. */
export const mostCounted = 5_000

type ApplicationRow = z.output<ReturnType<typeof applicationView>['schema']>

type Found = {
  readonly count: number
  readonly rows: readonly ApplicationRow[]
  /** Whether there are more than are counted. */
  readonly isCut: boolean
  /** By slug. */
  readonly states: ReadonlyMap<string, ApplicationState>
  /** Null: they could not be read in time. */
  readonly changes: ReadonlyMap<string, LastChange> | null
}

/** @property team the owner that is looked at; undefined: none is, or it has no application */
type Shown = {
  readonly asked: Question
  /** Null: they could not be read in time. */
  readonly found: Found | null
  readonly team: OwnerStates | undefined
}

export function applicationsPage({ asked, found, team }: Shown, actor: Actor): string {
  const { text, owner, state, page: at } = asked
  return page({
    title: 'Applications',
    actor,
    within: applicationsPath,
    isLive: at === 1,
    content: html`${!allows(actor, 'view_application') && html`<p class="quiet">You see those of some owners only: your rights are bound to them.</p>`}
<form class="filters" method="get" action="${applicationsPath}">
${textField('text', 'Words of name, slug or group', { value: text })}
${textField('owner', 'Owner', { value: owner })}
${choiceField('state', 'State', state, [['', 'any'], ...states.map((each) => [each, stateWords[each]] as const)])}
<div class="choice"><button type="submit">Show</button><a class="button" href="${applicationsPath}">Clear</a></div>
</form>
${team !== undefined && teamTable([team])}
<section>${
      found === null
        ? notKnown('This takes too long: say more of what you look for.')
        : html`<h2>${found.isCut ? `${number(mostCounted)}+ applications` : count(found.count, 'application')}</h2>
${found.rows.length > 0 ? list(found, actor) : formerly(text ?? '')}
${moves({
  Before: at > 1 && withQuery(applicationsPath, { ...asked, page: at - 1 }),
  Next: at * rowsOfPage < found.count && withQuery(applicationsPath, { ...asked, page: at + 1 }),
})}`
    }</section>
<form method="post" action="${applicationsPath}"><p class="quiet">Workers compare all applications with their recorded changes every 10 minutes. ${allows(actor, 'manage_queue') && html`<button type="submit">Compare now</button>`}</p></form>`,
  })
}

/** An application that was deleted or renamed is in no list, and has a history. */
const formerly = (text: string): Html | false =>
  /^[\w-]+$/.test(text) &&
  html`<p>None has it now. <a href="${applicationPath(text)}">What was done to one with the slug ${text}</a></p>`

const list = ({ rows, states: found, changes }: Found, actor: Actor): Html =>
  table(
    'Applications',
    {
      Name: 'text',
      Slug: 'name',
      State: 'text',
      Provider: 'name',
      Kind: 'plain',
      Owner: 'name',
      'Last change': 'text',
    },
    rows.map((row) => ({
      id: `application-${row.pk}`,
      cells: [
        html`<a href="${applicationPath(row.slug)}">${titleText(row.name)}</a>`,
        row.slug,
        stateText(found.get(row.slug), actor),
        ...providerCells(row),
        row.owner !== null &&
          html`<a href="${withQuery(applicationsPath, { owner: row.owner })}">${nameText(row.owner)}</a>`,
        changes === null ? 'not known' : lastChange(changes.get(row.pk)),
      ],
    })),
  )

const lastChange = (last: LastChange | undefined): Html | false =>
  last !== undefined && html`${shortTime(last.at)}${last.user !== null && ` by ${nameText(last.user)}`}`

/** A provider of an owner that the caller may not see is shown by its key. */
const providerCells = ({ provider, provider_obj }: ApplicationRow): readonly [HtmlValue, HtmlValue] =>
  provider === null
    ? ['none', '']
    : [nameText(provider_obj?.name ?? `key ${provider}`), provider_obj?.verbose_name ?? 'not shown']

type One = {
  readonly slug: string
  /** Undefined: no application has this slug now. */
  readonly row: ApplicationRow | undefined
  readonly state: ApplicationState | undefined
  /** The application and its provider beside their recorded changes, as far as the caller sees them; null: not read in time. */
  readonly standing: readonly Standing[] | null
  /** The last run whose document the caller may plan again, if it was changed outside. */
  readonly putBack: string | null
  /** The newest first. */
  readonly entries: readonly Recorded[]
  /** The start of the older entries. */
  readonly next: string | null
  readonly isFirst: boolean
  readonly nameOf: (model: string) => string
  /** The value of a field that a new row gets. */
  readonly initialOf: (model: string, field: string) => unknown
}

export function applicationPage(shown: One, actor: Actor): string {
  const { slug, row, state, standing, putBack, entries, next, isFirst } = shown
  const isChanged = standing !== null && isOutside(standing) === true
  return page({
    title: row?.name ?? slug,
    actor,
    within: applicationsPath,
    isLive: isFirst,
    content: html`${row === undefined && html`<div class="summary bad"><p>${mark('off', 'gone')} <span class="says">There is no application of this slug now: it was deleted or renamed.</span></p></div>`}
${state?.state === 'failing' && html`<div class="summary bad"><p>${stateText(state, actor)}</p></div>`}
${state?.state === 'waiting' && html`<div class="summary"><p>${stateText(state, actor)} <span class="says">A run that names it has not ended.</span></p></div>`}
${
  isChanged &&
  html`<div class="summary warn"><p>${mark('warn', 'changed outside')} <span class="says">It, or its provider, is not as its recorded changes left it.</span></p>
${putBack !== null && html`<p><a href="${rollBackPath(putBack)}">Plan its last document again</a>: what it would put back.</p>`}</div>`
}
<div class="columns${isFirst && row !== undefined && ' aside'}">
${isFirst && row !== undefined && html`<section><h2>As it stands</h2>${facts(row, stateText(state, actor))}${standing === null ? notKnown() : standing.map((each) => fieldsOf(each, shown))}</section>`}
<section><h2>What was done to it and to its providers</h2>
${entries.length === 0 ? html`<p>Nothing is recorded.</p>` : timeline(shown, actor)}
${moves({
  'The newest': !isFirst && applicationPath(slug),
  Older: next !== null && `${applicationPath(slug)}?before=${next}`,
})}</section>
</div>`,
  })
}

function facts(row: ApplicationRow, state: Html): Html {
  const [provider, kind] = providerCells(row)
  return factList([
    ['State', state],
    ['Slug', html`<code>${row.slug}</code>`],
    ['Provider', html`${provider}${kind !== '' && html`, ${kind}`}`],
    ['Backchannel', row.backchannel_providers.length > 0 && `${number(row.backchannel_providers.length)} providers`],
    [
      'Owner',
      row.owner === null
        ? 'none'
        : html`<a href="${withQuery(applicationsPath, { owner: row.owner })}">${nameText(row.owner)}</a>`,
    ],
    ['Made by', row.created_by_name && nameText(row.created_by_name)],
    [
      'Runs',
      html`<a href="${runsPath}?period=month&amp;object=application%3A${encodeURIComponent(row.slug)}">that changed it, in the last 30 days</a>`,
    ],
  ])
}

/** The fields of the application, or of its provider: what was changed outside first, what has its default folded. */
function fieldsOf({ model, values, outside }: Standing, { nameOf, initialOf }: One): Html {
  const changed = Object.entries(outside ?? {})
  const others = Object.entries(values).filter(([name]) => !Object.hasOwn(outside ?? {}, name))
  const [usual, set] = [true, false].map((wanted) =>
    others.filter(([name, value]) => isDeepStrictEqual(value, initialOf(model, name) ?? null) === wanted),
  )
  const listed = (fields: typeof others = []) =>
    fieldList(Object.fromEntries(fields.map(([name, to]) => [name, { from: null, to }])), true)
  return html`<h3>${nameOf(model)}</h3>
${changed.length > 0 && html`<p>${mark('warn', 'changed outside')}, from what was recorded to what is there:</p>${fieldList(Object.fromEntries(changed), false)}`}
${listed(set)}
${(usual?.length ?? 0) > 0 && html`<details id="usual-${model}"><summary>${count(usual?.length ?? 0, 'field')} with the default</summary>${listed(usual)}</details>`}`
}

const actions: Readonly<Record<HistoryEntry['action'], readonly [Look, string]>> = {
  create: ['good', 'created'],
  update: ['changed', 'changed'],
  delete: ['bad', 'deleted'],
}

const timeline = ({ entries, nameOf }: One, actor: Actor): Html =>
  table(
    'What was done',
    { At: 'plain', What: 'text', Who: 'name', 'Fields, from -> to': 'text' },
    entries.map(({ entry, cursor, run: former }) => {
      const { at, action, model, name, was, owner, fields, user, real_user, run } = entry
      const mayReturn = former?.hasDocument === true && mayRollBack(actor, former.submitterPk)
      return {
        id: `change-${cursor}`,
        cells: [
          html`${shortTime(new Date(at))}${run !== null && html`<br><a href="${runPagePath(run)}">${shortId(run)}</a>${mayReturn && html`<br><a href="${rollBackPath(run)}">roll back to this</a>`}`}`,
          html`${mark(...actions[action])}<br>${nameOf(model)} ${nameText(name)}${was !== null && `, was ${nameText(was)}`}${owner !== null && html`<br><span class="quiet">owner ${nameText(owner)}</span>`}`,
          html`${nameText(user?.username ?? 'not shown')}${real_user !== null && `, in truth ${nameText(real_user.username)}`}`,
          fields === null ? html`<span class="quiet">not kept</span>` : changedFields(cursor, fields, action),
        ],
      }
    }),
  )

/** The fields of a change. Those of a new object are folded: it may have many. */
function changedFields(cursor: string, fields: NonNullable<HistoryEntry['fields']>, action: HistoryEntry['action']) {
  if (action !== 'create') return fieldList(fields, false)
  return html`<details id="fields-${cursor}"><summary>${count(Object.keys(fields).length, 'field')}</summary>${fieldList(fields, true)}</details>`
}
