import { type Html, type HtmlValue, html } from '../http/html.ts'
import type { Pipeline } from '../pipeline.ts'
import { jobFacts, nameText, number, whole } from './words.ts'

/** `number`: aligned to the right, digits of one width. `name`: on one line. */
type Kind = 'number' | 'text' | 'name' | 'plain'

/** The columns of a table, by their heads: the kind of each, and its cell of a row. The first cell names its row. */
type Columns<Row> = Readonly<Record<string, readonly [kind: Kind, cell: (row: Row) => HtmlValue]>>

type Rows<Row> = {
  /** An id that stays the same from one answer to the next: the script keeps the state that a person changed in the row. */
  readonly idOf?: (row: Row) => string
  readonly isQuiet?: (row: Row) => boolean
  /** The most rows; a line counts the others. */
  readonly most?: number
}

/** A table. On a narrow page its rows are blocks, and otherwise it scrolls sideways in itself. */
export function table<Row>(
  caption: string,
  rows: readonly Row[],
  columns: Columns<Row>,
  { idOf, isQuiet, most = rows.length }: Rows<Row> = {},
): Html {
  const left = rows.length - most
  const all = Object.entries(columns)
  const classOf = (kind: Kind) => kind !== 'plain' && html` class="${kind}"`
  const cellOf = (row: Row, [head, [kind, cell]]: (typeof all)[number], index: number) => {
    const shown = cell(row)
    // A name may be cut: its title is whole.
    const title = kind === 'name' && typeof shown === 'string' && shown !== '' && html` title="${shown}"`
    return index === 0
      ? html`<th scope="row"${classOf(kind)}${title}>${shown}</th>`
      : html`<td${classOf(kind)} data-label="${head}"${title}>${shown}</td>`
  }
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table>
<thead><tr>${all.map(([head, [kind]]) => html`<th scope="col"${classOf(kind)}>${head}</th>`)}</tr></thead>
<tbody>
${rows.slice(0, most).map(
  (
    row,
  ) => html`<tr${idOf && html` id="${idOf(row)}"`}${isQuiet?.(row) && html` class="quiet"`}>${all.map((column, index) => cellOf(row, column, index))}</tr>
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

/** The job of a CI system in a line, which opens to its facts. @param id the same from one answer to the next */
export const jobDetails = (id: string, job: Pipeline): Html =>
  html`<details id="job-${id}"><summary>${nameText(job.repository ?? job.subject)} ${job.commit?.slice(0, 8)}</summary>${factList(jobFacts(job))}</details>`

/** Links to other parts of a list, by their words. */
export const moves = (links: Readonly<Record<string, string | false | null>>): Html =>
  html`<p class="choice">${Object.entries(links).map(
    ([words, address]) => address && html`<a class="button" href="${address}">${words}</a>`,
  )}</p>`
