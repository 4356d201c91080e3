/** A piece of HTML. Only the tag below makes one, so its texts are escaped. */
export class Html {
  readonly #text: string
  private constructor(text: string) {
    this.#text = text
  }
  /** Makes HTML of a text. Only `html` and `trusted` call it. */
  static readonly of = (text: string): Html => new Html(text)
  toString(): string {
    return this.#text
  }
}

/** A value in a template: `null`, `undefined` and `false` are empty, and lists are joined. */
export type HtmlValue = Html | string | number | bigint | null | undefined | false | readonly HtmlValue[]

/**
 * HTML as a template: each value is escaped, except other HTML. Values stand between tags, or in an attribute within double
 * quotes.
 *
 * @example html`<p title="${name}">${isNew && html`<b>new</b>`}</p>`
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return Html.of(parts.reduce((text, part, index) => `${text}${textOf(values[index - 1])}${part}`))
}

/** HTML of the product's own, such as its icon. A text of a caller never goes in here. */
export const trusted = (text: string): Html => Html.of(text)

function textOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return ''
  if (value instanceof Html) return value.toString()
  if (Array.isArray(value)) return value.map(textOf).join('')
  return escaped(String(value))
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
