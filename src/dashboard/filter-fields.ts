import { z } from 'zod'
import { type Html, html } from '../http/html.ts'
import { queryText } from '../lists/filters.ts'
import { withQuery } from './addresses.ts'
import { moves } from './table.ts'

/** The fields of a form that narrows a list: its address is the whole state of the page. */

/** A text of a form. Forms send all their fields: an empty one counts as absent. */
export const sentText = queryText(200)
  .transform((sent) => sent.trim() || null)
  .default(null)

/** The key of the row behind which a page begins. */
export const sentKey = z
  .string()
  .regex(/^[1-9]\d{0,17}$/)
  .nullable()
  .default(null)

type Text = {
  readonly value: string | null | undefined
  readonly hint?: string | undefined
  readonly isWrong?: boolean
  readonly mostLetters?: number
}

export const textField = (
  name: string,
  label: string,
  { value, hint, isWrong = false, mostLetters = 200 }: Text,
): Html =>
  html`<div><label for="f-${name}">${label}</label><input id="f-${name}" name="${name}" value="${value}" maxlength="${mostLetters}" autocomplete="off"${hint !== undefined && html` placeholder="${hint}"`}${isWrong && html` aria-invalid="true"`}></div>
`

/** @param options value -> words */
export const choiceField = (
  name: string,
  label: string,
  chosen: string,
  options: readonly (readonly [string, string])[],
): Html =>
  html`<div><label for="f-${name}">${label}</label><select id="f-${name}" name="${name}">${options.map(
    ([value, words]) => html`<option value="${value}"${value === chosen && html` selected`}>${words}</option>`,
  )}</select></div>
`

export const filters = (path: string, fields: Html): Html => html`<form class="filters" method="get" action="${path}">
${fields}
<div class="choice"><button type="submit">Show</button><a class="button" href="${path}">Clear</a></div>
</form>`

type Search = Readonly<Record<string, string | number | null | undefined>>

/** Links to the first page of a search, and to the one behind this. @param next the last row of the page, if there are more */
export const turns = (path: string, { before, ...search }: Search, next: string | null | undefined): Html =>
  moves({
    'The newest': before != null && withQuery(path, search),
    Older: next != null && withQuery(path, { ...search, before: next }),
  })

type Sent = { readonly value?: string | null | undefined; readonly wrong?: string | undefined }

/** A line that says why. @param hint who may read it @param sent what was sent before, and its error */
export const whyField = (name: string, most: number, hint: string, { value, wrong }: Sent): Html =>
  html`<label for="${name}">Why? (optional)</label>
${wrong !== undefined && html`<p class="alert" role="alert" id="wrong">${wrong}</p>`}
<input id="${name}" name="${name}" maxlength="${most}" value="${value}" autocomplete="off"${wrong !== undefined && html` aria-invalid="true" autofocus`} aria-describedby="${wrong !== undefined && 'wrong '}why">
<p class="quiet" id="why">${hint}</p>`
