import { bytesOf, type Html, type HtmlValue, html } from '../http/html.ts'

/** The kind of each column, by its head. `number`: aligned to the right, digits of one width. */
type Columns = Readonly<Record<string, 'number' | 'text' | 'name' | 'plain'>>

export type Row = {
  /** An id that stays the same from one answer to the next: the script keeps the state that a person changed in the row. */
  readonly id?: string
  readonly look?: 'bad' | 'quiet' | undefined
  /** The first cell names the row. */
  readonly cells: readonly HtmlValue[]
}

/** A table that scrolls sideways in itself on a narrow page. */
export function table(caption: string, columns: Columns, rows: readonly Row[]): Html {
  const classes = Object.values(columns).map((kind) => kind !== 'plain' && html` class="${kind}"`)
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table>
<thead><tr>${Object.keys(columns).map((head, index) => html`<th scope="col"${classes[index]}>${head}</th>`)}</tr></thead>
<tbody>
${rows.map(
  ({
    id,
    look,
    cells: [first, ...others],
  }) => html`<tr${id && html` id="${id}"`}${look && html` class="${look}"`}><th scope="row"${classes[0]}>${first}</th>${others.map((cell, index) => html`<td${classes[index + 1]}>${cell}</td>`)}</tr>
`,
)}</tbody></table></div>`
}

const bytesOfCell = 40

/** The first rows of a table, as many as its page has room for, and at least one. @param most the most bytes, approximately */
export function rowsWithin(most: number, rows: readonly Row[]): readonly Row[] {
  let left = most
  const after = rows.findIndex(({ cells }, index) => {
    left -= bytesOf(cells) + bytesOfCell * (cells.length + 1)
    return index > 0 && left < 0
  })
  return after === -1 ? rows : rows.slice(0, after)
}

/** Names and values, without empty values. */
export const factList = (rows: readonly (readonly [string, HtmlValue])[]): Html =>
  html`<dl class="facts">${rows.map(
    ([name, value]) =>
      value !== null &&
      value !== false &&
      html`<dt>${name}</dt><dd>${value}</dd>
`,
  )}</dl>`
