import type { Change } from '../../apply/changes.ts'
import { cutTo, type Html, html } from '../../http/html.ts'
import { queryInteger } from '../../lists/filters.ts'
import { asText, type Difference, differences } from '../../sides.ts'
import { changeOrder, countsOf, countsText } from '../../views/run-summary.ts'
import { count, nameText, number } from '../words.ts'

/** The changes of a run, from -> to: effects first, unchanged objects last and folded. */

type Words = Readonly<Record<Change['action'], string>>
const words: Words = { delete: 'Deleted', update: 'Changed', create: 'Created', unchanged: 'Unchanged' }

/** The number of entries with each action: `2 deleted, 1 changed`. */
export const changeCounts = (changes: readonly Change[]): string => countsText(countsOf(changes), number)

export const areUnchanged = (changes: readonly Change[]): boolean =>
  changes.every(({ action }) => action === 'unchanged')

/** The most entries of a page. */
const mostEntries = 100
/** The most lines of a run's log, and fields of an entry. */
const mostLines = 40
const mostFields = 30

type Names = (model: string) => string

/** The member of an address: the index of the first change that is shown. */
export const startOfPart = queryInteger(0, 1_000_000).default(0)

type Part = { readonly start: number; readonly nameOf: Names; readonly called?: Words }

/** A part of the changes of a page, with links to the others. @param address the address of the first part */
export function changesPart(
  changes: readonly Change[],
  address: string,
  { start, nameOf, called = words }: Part,
): Html {
  const order = ({ action }: Change) => changeOrder.indexOf(action)
  const shown = changes.toSorted((one, other) => order(one) - order(other)).slice(start, start + mostEntries)
  const total = changes.length
  const next = start + shown.length
  const nextAddress = `${address}${address.includes('?') ? '&' : '?'}start=${next}`
  return html`${start > 0 && html`<p class="quiet">From ${number(start + 1)} on, of ${number(total)}. <a href="${address}">From the first</a></p>`}
${[...Map.groupBy(shown, ({ action }) => action)].map(([action, all]) =>
  action === 'unchanged'
    ? unchanged(all.map((each) => html`<li>${objectName(each, nameOf)}</li>`))
    : tableOf(
        action,
        called[action],
        all.map((each) => rowsOf(each, nameOf)),
      ),
)}
${shown.length > 0 && next < total && html`<p class="choice"><a class="button" href="${nextAddress}">The next ones, of ${number(total)}</a></p>`}`
}

/** The columns of an action. A created object had no value before. */
const columnsOf = (action: Change['action']) =>
  action === 'create' ? ['Object', 'Field', 'To'] : ['Object', 'Field', 'From', 'To']

const tableOf = (action: Change['action'], title: string, rows: readonly Html[]): Html => html`<h3>${title}</h3>
<div class="scroll" role="region" aria-label="${title}" tabindex="0"><table class="changes">
<thead><tr>${columnsOf(action).map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>
${rows}</tbody></table></div>`

const unchanged = (names: readonly Html[]): Html =>
  html`<details id="unchanged"><summary>Unchanged: ${count(names.length, 'object')} of this page</summary><ul class="names">${names}</ul></details>`

function rowsOf(change: Change, nameOf: Names): Html {
  const isNew = change.action === 'create'
  const width = isNew ? 2 : 3
  const rows = fieldRows(change.fields)
  const left = rows.length - mostFields
  const lines = [
    ...rows.slice(0, mostFields).map((row) => cellsOf(row, isNew)),
    ...(left > 0 ? [html`<td colspan="${width}">and ${count(left, 'field')} more, in the API</td>`] : []),
  ]
  const [first = html`<td colspan="${width}"></td>`, ...others] = lines
  const height = Math.max(1, lines.length)
  return html`<tr><th scope="row" class="text"${height > 1 && html` rowspan="${height}"`}>${objectName(change, nameOf)}</th>${first}</tr>
${others.map(
  (line) => html`<tr>${line}</tr>
`,
)}`
}

type FieldRow = Difference & { readonly note?: string }

/** The differences of each field, a line for each place in it. */
const fieldRows = (fields: Change['fields']): FieldRow[] =>
  Object.entries(fields).flatMap(([path, field]): FieldRow[] => {
    if (typeof field === 'string') return [{ path, note: `a secret: ${field}` }]
    const { listed, more } = differences(path, field, { textOf })
    return more > 0 ? [...listed, { path, note: `and ${number(more)} more, in the API` }] : [...listed]
  })

const objectName = ({ model, key }: Change, nameOf: Names): string => {
  const names = Object.values(key).map((value) => textOf(value))
  return nameText(`${nameOf(model)} ${names.join(', ')}`)
}

function cellsOf({ path, note, from = '', to = '' }: FieldRow, isNew: boolean): Html {
  const name = html`<td>${nameText(path)}</td>`
  if (note !== undefined) return html`${name}<td${!isNew && html` colspan="2"`}>${note}</td>`
  return html`${name}${!isNew && html`<td class="old text">${from}</td>`}<td class="text">${to}</td>`
}

/** Fields as lines: `name: from -> to`. */
export function fieldList(fields: Change['fields'], isNew: boolean): Html {
  const rows = fieldRows(fields)
  const left = rows.length - mostFields
  const lines = rows.slice(0, mostFields).map(({ path, note, from, to }) => {
    const sides = isNew || from === undefined ? to : html`<span class="quiet">${from}</span> -> ${to ?? 'nothing'}`
    return html`<li>${nameText(path)}: ${note ?? sides}</li>`
  })
  return html`<ul class="lines">${lines}${left > 0 && html`<li class="quiet">and ${count(left, 'field')} more</li>`}</ul>`
}

/** A value without the quotes of JSON. */
function textOf(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'nothing'
  return typeof value === 'string' ? value : asText(value)
}

/** The first sentences of a run. */
export function lineList(lines: readonly (string | Html)[]): Html {
  const shown = lines
    .slice(0, mostLines)
    .map((line) => html`<li>${typeof line === 'string' ? cutTo(1_000, line) : line}</li>`)
  return html`<ul>${shown}</ul>
${lines.length > shown.length && html`<p class="quiet">And ${count(lines.length - shown.length, 'line')} more, in the API.</p>`}`
}
