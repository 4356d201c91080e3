import { bytesOf, type Html, type HtmlValue, html } from '../http/html.ts'

/** @property of `number`: aligned to the right, digits of one width */
type Column = { readonly head: string; readonly of?: 'number' | 'text' | 'name' }

export type Row = {
  /** Stays the same from one answer to the next: the script keeps what a person does in it. */
  readonly id?: string
  readonly look?: 'bad' | 'quiet' | undefined
  /** The first one names the row. */
  readonly cells: readonly HtmlValue[]
}

/** A table that scrolls sideways in itself, where a page is narrow. */
export function table(caption: string, columns: readonly Column[], rows: readonly Row[]): Html {
  const kind = (index: number) => columns[index]?.of
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table>
<thead><tr>${columns.map(({ head, of }) => html`<th scope="col"${of && html` class="${of}"`}>${head}</th>`)}</tr></thead>
<tbody>
${rows.map(
  ({
    id,
    look,
    cells: [first, ...others],
  }) => html`<tr${id && html` id="${id}"`}${look && html` class="${look}"`}><th scope="row"${kind(0) && html` class="${kind(0)}"`}>${first}</th>${others.map((cell, index) => html`<td${kind(index + 1) && html` class="${kind(index + 1)}"`}>${cell}</td>`)}</tr>
`,
)}</tbody></table></div>`
}

const bytesOfCell = 40

/** The first rows of a table, as many as its page has room for, and at least one. @param most about how many bytes */
export function rowsWithin(most: number, rows: readonly Row[]): readonly Row[] {
  let left = most
  const after = rows.findIndex(({ cells }, index) => {
    left -= bytesOf(cells) + bytesOfCell * (cells.length + 1)
    return index > 0 && left < 0
  })
  return after === -1 ? rows : rows.slice(0, after)
}

/** Names and values, without those that there are none of. */
export const factList = (rows: readonly (readonly [string, HtmlValue])[]): Html =>
  html`<dl class="facts">${rows.map(
    ([name, value]) =>
      value !== null &&
      value !== false &&
      html`<dt>${name}</dt><dd>${value}</dd>
`,
  )}</dl>`
