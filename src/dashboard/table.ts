import { type Html, type HtmlValue, html } from '../http/html.ts'
import { number, whole } from './words.ts'

/** The kind of each column, by its head. `number`: aligned to the right, digits of one width. `name`: on one line. */
type Columns = Readonly<Record<string, 'number' | 'text' | 'name' | 'plain'>>

export type TableRow = {
  /** An id that stays the same from one answer to the next: the script keeps the state that a person changed in the row. */
  readonly id?: string
  readonly look?: 'quiet' | undefined
  /** The first cell names the row. */
  readonly cells: readonly HtmlValue[]
}

/**
 * A table. On a narrow page its rows are blocks, and otherwise it scrolls sideways in itself.
 *
 * @param most the most rows; a line counts the others
 */
export function table(caption: string, columns: Columns, rows: readonly TableRow[], most = rows.length): Html {
  const left = rows.length - most
  const heads = Object.keys(columns)
  const classes = Object.values(columns).map((kind) => kind !== 'plain' && html` class="${kind}"`)
  // A name may be cut: its title is whole.
  const title = (index: number, cell: HtmlValue) =>
    columns[heads[index] ?? ''] === 'name' && typeof cell === 'string' && cell !== '' && html` title="${cell}"`
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table>
<thead><tr>${heads.map((head, index) => html`<th scope="col"${classes[index]}>${head}</th>`)}</tr></thead>
<tbody>
${rows.slice(0, most).map(
  ({
    id,
    look,
    cells: [first, ...others],
  }) => html`<tr${id && html` id="${id}"`}${look && html` class="${look}"`}><th scope="row"${classes[0]}${title(0, first)}>${first}</th>${others.map((cell, index) => html`<td${classes[index + 1]} data-label="${heads[index + 1]}"${title(index + 1, cell)}>${cell}</td>`)}</tr>
`,
)}</tbody></table></div>${left > 0 && html`<p class="quiet">And ${number(left)} more.</p>`}`
}

/** Names and values, without empty values. */
export const factList = (rows: readonly (readonly [HtmlValue, HtmlValue])[]): Html =>
  html`<dl class="facts">${rows.map(
    ([name, value]) =>
      name !== false &&
      value !== null &&
      value !== false &&
      html`<dt>${name}</dt><dd>${typeof value === 'string' ? whole(value) : value}</dd>
`,
  )}</dl>`

/** Links to other parts of a list, by their words. */
export const moves = (links: Readonly<Record<string, string | false | null>>): Html =>
  html`<p class="choice">${Object.entries(links).map(
    ([words, address]) => address && html`<a class="button" href="${address}">${words}</a>`,
  )}</p>`
