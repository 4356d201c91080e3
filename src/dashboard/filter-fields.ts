import { type Html, html } from '../http/html.ts'

/** The fields of a form that narrows a list: its address is the whole state of the page. */

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
