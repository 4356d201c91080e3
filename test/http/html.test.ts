import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Html, html, trusted } from '../../src/http/html.ts'
import { cutTo } from '../../src/sides.ts'

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const decoded = (text: string) => text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? '')

describe('the html tag', () => {
  test('escapes any text, so that it ends neither its element nor its attribute, and is read back as it was', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...`<>"'&;/=a `) })),
        (text) => {
          const page = String(html`<a title="${text}">${[text, [text]]}</a>`)
          const [, title = '', body = ''] = /^<a title="([^"<>]*)">([^<>"']*)<\/a>$/.exec(page) ?? []
          expect(decoded(title)).toBe(text)
          expect(decoded(body)).toBe(text + text)
        },
      ),
    )
  })

  test.each<[Html, string]>([
    [html`<p>${html`<b>${'&'}</b>`}</p>`, '<p><b>&amp;</b></p>'],
    [html`${[html`<i></i>`, 'a', 1, null, undefined, false, [html`<b></b>`, '<']]}`, '<i></i>a1<b></b>&lt;'],
    [html`${null}${undefined}${false}${0}${''}`, '0'],
    [html`${12n}${-1.5}`, '12-1.5'],
    [html`a\nb`, 'a\nb'],
    [trusted('<svg/>'), '<svg/>'],
  ])('%s', (page, text) => {
    expect(String(page)).toBe(text)
  })

  test('takes no object for HTML that only looks like it', () => {
    const forged = { toString: () => '<script>' } as unknown as Html
    expect(String(html`${forged}`)).toBe('&lt;script&gt;')
  })
})

test.each([
  [4, 'abcd', 'abcd'],
  [3, 'abcd', 'abc…'],
  [1, '😀', '\ufffd…'],
  [0, '', ''],
  [0, 'a', '…'],
])('a text that is cut to %d characters: %j', (most, text, cut) => {
  expect(cutTo(most, text)).toBe(cut)
})
