import { z } from 'zod'
import { type Html, html } from '../http/html.ts'
import { queryText } from '../lists/filters.ts'
import { withQuery } from './addresses.ts'
import { moves } from './table.ts'
import { wordsOf } from './words.ts'

/** The fields of a form that narrows a list: its address is the whole state of the page. */

/** A text of a form. Forms send all their fields: an empty one counts as absent. */
export const sentText = queryText(200)
  .transform((sent) => sent.trim() || null)
  .default(null)

/** The first words of a text, all of which a search must find. */
export const termsOf = (text: string): string[] => text.split(/\s+/u).slice(0, 8)

/** The key of the row behind which a page begins. */
export const sentKey = (form = /^[1-9]\d{0,17}$/) => z.string().regex(form).nullable().default(null)

type Words = Readonly<Record<string, string>>

/** The choices of a field, each by its own words. */
export const wordsBy = (values: readonly string[]): Words =>
  Object.fromEntries(values.map((each) => [each, wordsOf(each)]))

/** @param words those of each value */
export const choiceField = (name: string, label: string, chosen: string, words: Words): Html =>
  html`<div><label for="f-${name}">${label}</label><select id="f-${name}" name="${name}">${Object.entries(words).map(
    ([value, word]) => html`<option value="${value}"${value === chosen && html` selected`}>${word}</option>`,
  )}</select></div>
`

/** A field of the form of a list: a choice, which has the words of its values, or a text. @property hint an example of it */
export type FilterField = { readonly label: string; readonly words?: Words; readonly hint?: string }

type Search = Readonly<Record<string, string | number | null | undefined>>

type Extras = {
  /** The fields whose text is not right. */
  readonly wrong?: Readonly<Record<string, unknown>> | undefined
  readonly mostLetters?: number
  readonly hidden?: Html | false
}

/** The form of a list, at its address, with its fields by their names there, and what was sent. */
export const filters = (
  path: string,
  fields: Readonly<Record<string, FilterField>>,
  sent: Search,
  { wrong = {}, mostLetters = 200, hidden = false }: Extras = {},
): Html => html`<form class="filters" method="get" action="${path}">
${Object.entries(fields).map(([name, { label, words, hint }]) =>
  words !== undefined
    ? choiceField(name, label, String(sent[name] ?? ''), words)
    : html`<div><label for="f-${name}">${label}</label><input id="f-${name}" name="${name}" value="${sent[name]}" maxlength="${mostLetters}" autocomplete="off"${hint !== undefined && html` placeholder="${hint}"`}${wrong[name] !== undefined && html` aria-invalid="true"`}></div>
`,
)}${hidden}
<div class="choice"><button type="submit">Show</button><a class="button" href="${path}">Clear</a></div>
</form>`

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
