import { z } from 'zod'
import { type Html, html } from '../http/html.ts'
import { queryText } from '../lists/filters.ts'

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
