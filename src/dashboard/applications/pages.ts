import { z } from 'zod'
import { type Html, type HtmlValue, html } from '../../http/html.ts'
import { queryInteger } from '../../lists/filters.ts'
import { type Actor, allows } from '../../permissions.ts'
import { mayRollBack } from '../../submissions/access.ts'
import type { applicationView } from '../../views/application.ts'
import type { HistoryEntry, Recorded } from '../../views/history.ts'
import type { LastChange } from '../../views/last-changes.ts'
import { applicationPath, applicationsPath, rollBackPath, runPagePath, runsPath, withQuery } from '../addresses.ts'
import { sentText, textField } from '../filter-fields.ts'
import { page } from '../frame.ts'
import { fieldList } from '../runs/changes.ts'
import { factList, moves, table } from '../table.ts'
import { count, type Look, mark, nameText, notKnown, number, shortId, shortTime, time, titleText } from '../words.ts'

/** /admin/applications/: the applications with their owners; and for each, its changes, with their times and users. */

export const applicationsQuery = z.strictObject({
  text: sentText,
  owner: sentText,
  page: queryInteger(1, 1_000_000).default(1),
})
type Question = z.output<typeof applicationsQuery>

export const rowsOfPage = 50
/** The pages count no further. */
export const mostCounted = 5_000

type ApplicationRow = z.output<ReturnType<typeof applicationView>['schema']>

/** @property changes null: they could not be read in time @property isCut there are more than are counted */
type Found = {
  readonly count: number
  readonly rows: readonly ApplicationRow[]
  readonly isCut: boolean
  readonly changes: ReadonlyMap<string, LastChange> | null
}

/** @param found null: they could not be read in time */
export function applicationsPage(asked: Question, found: Found | null, actor: Actor): string {
  const { text, owner, page: at } = asked
  return page({
    title: 'Applications',
    actor,
    within: applicationsPath,
    isLive: at === 1,
    content: html`${!allows(actor, 'view_application') && html`<p class="quiet">You see those of some owners only: your rights are bound to them.</p>`}
<form class="filters" method="get" action="${applicationsPath}">
${textField('text', 'Words of name, slug or group', { value: text })}
${textField('owner', 'Owner', { value: owner })}
<div class="choice"><button type="submit">Show</button><a class="button" href="${applicationsPath}">Clear</a></div>
</form>
<section>${
      found === null
        ? notKnown('This takes too long: say more of what you look for.')
        : html`<h2>${found.isCut ? `${number(mostCounted)}+ applications` : count(found.count, 'application')}</h2>
${found.rows.length > 0 ? list(found) : formerly(text ?? '')}
${moves({
  Before: at > 1 && withQuery(applicationsPath, { ...asked, page: at - 1 }),
  Next: at * rowsOfPage < found.count && withQuery(applicationsPath, { ...asked, page: at + 1 }),
})}`
    }</section>`,
  })
}

/** An application that was deleted or renamed is in no list, and has a history. */
const formerly = (text: string): Html | false =>
  /^[\w-]+$/.test(text) &&
  html`<p>None has it now. <a href="${applicationPath(text)}">What was done to one with the slug ${text}</a></p>`

const list = ({ rows, changes }: Found): Html =>
  table(
    'Applications',
    {
      Name: 'text',
      Slug: 'name',
      Provider: 'name',
      Kind: 'plain',
      Owner: 'name',
      'Made by': 'name',
      'Last change': 'text',
    },
    rows.map((row) => ({
      id: `application-${row.pk}`,
      cells: [
        html`<a href="${applicationPath(row.slug)}">${titleText(row.name)}</a>`,
        row.slug,
        ...providerCells(row),
        nameText(row.owner ?? ''),
        nameText(row.created_by_name ?? ''),
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

type Shown = {
  readonly slug: string
  /** Undefined: no application has this slug now. */
  readonly row: ApplicationRow | undefined
  /** Whether it was changed outside of the service; nothing when that is not known. */
  readonly isOutside: boolean | null | undefined
  /** The last run whose document the caller may plan again, if it was changed outside. */
  readonly putBack: string | null
  /** The newest first. */
  readonly entries: readonly Recorded[]
  /** The start of the older entries. */
  readonly next: string | null
  readonly isFirst: boolean
  readonly nameOf: (model: string) => string
}

export function applicationPage(shown: Shown, actor: Actor): string {
  const { slug, row, isOutside, putBack, entries, next, isFirst } = shown
  const last = entries[0]?.entry
  return page({
    title: row?.name ?? slug,
    actor,
    within: applicationsPath,
    isLive: isFirst,
    content: html`${row === undefined && html`<div class="summary bad"><p>${mark('off', 'gone')} <span class="says">There is no application of this slug now: it was deleted or renamed.</span></p></div>`}
${
  isOutside === true &&
  html`<div class="summary bad"><p>${mark('warn', 'changed outside')} <span class="says">It, or its provider, is not as its recorded changes left it.</span></p>
${putBack !== null && html`<p><a href="${rollBackPath(putBack)}">Plan its last document again</a>: what it would put back.</p>`}</div>`
}
${isFirst && row !== undefined && html`<section><h2>What it is</h2>${facts(row, last)}</section>`}
<section><h2>What was done to it and to its providers</h2>
${entries.length === 0 ? html`<p>Nothing is recorded.</p>` : timeline(shown, actor)}
${moves({
  'The newest': !isFirst && applicationPath(slug),
  Older: next !== null && `${applicationPath(slug)}?before=${next}`,
})}</section>`,
  })
}

function facts(row: ApplicationRow, last: HistoryEntry | undefined): Html {
  const [provider, kind] = providerCells(row)
  const rows: readonly (readonly [string, HtmlValue])[] = [
    ['Slug', html`<code>${row.slug}</code>`],
    ['Provider', html`${provider}${kind !== '' && html`, ${kind}`}`],
    ['Backchannel', row.backchannel_providers.length > 0 && `${number(row.backchannel_providers.length)} providers`],
    ['Owner', nameText(row.owner ?? 'none')],
    ['Made by', row.created_by_name && nameText(row.created_by_name)],
    ['Group', row.group !== '' && titleText(row.group)],
    [
      'Last change',
      last !== undefined &&
        html`${time(new Date(last.at))}${last.user !== null && `, by ${nameText(last.user.username)}`}`,
    ],
    [
      'Runs',
      html`<a href="${runsPath}?period=month&amp;object=application%3A${encodeURIComponent(row.slug)}">that changed it, in the last 30 days</a>`,
    ],
  ]
  return factList(rows)
}

const actions: Readonly<Record<HistoryEntry['action'], readonly [Look, string]>> = {
  create: ['good', 'created'],
  update: ['changed', 'changed'],
  delete: ['bad', 'deleted'],
}

const timeline = ({ entries, nameOf }: Shown, actor: Actor): Html =>
  table(
    'What was done',
    {
      At: 'plain',
      What: 'plain',
      Object: 'name',
      Who: 'name',
      Run: 'plain',
      'Fields, from -> to': 'text',
    },
    entries.map(({ entry, cursor, run: former }) => {
      const { at, action, model, name, was, owner, fields, user, real_user, run } = entry
      return {
        id: `change-${cursor}`,
        cells: [
          time(new Date(at)),
          mark(...actions[action]),
          html`${nameOf(model)} ${nameText(name)}${was !== null && `, was ${nameText(was)}`}${owner !== null && html`<br><span class="quiet">owner ${nameText(owner)}</span>`}`,
          html`${nameText(user?.username ?? 'not shown')}${real_user !== null && `, in truth ${nameText(real_user.username)}`}`,
          run !== null &&
            html`<a href="${runPagePath(run)}">${shortId(run)}</a>${
              former?.hasDocument === true &&
              mayRollBack(actor, former.submitterPk) &&
              html`<br><a href="${rollBackPath(run)}">roll back to this</a>`
            }`,
          fields === null ? html`<span class="quiet">not kept</span>` : fieldList(fields, action === 'create'),
        ],
      }
    }),
  )
