import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { policy, self } from './headers.ts'
import { icon } from './icon.ts'

/** The frame of the product's own pages. They work without JavaScript and load nothing but the icon. */

const style = readFileSync(new URL('page.css', import.meta.url), 'utf8')

/** Allows the one inline style that has this text, in a Content-Security-Policy. */
export const hashSource = (style: string): string => `'sha256-${createHash('sha256').update(style).digest('base64')}'`

/** Allows the style of these pages. */
export const styleSource = hashSource(style)

/** For a page without forms. */
export const plainPolicy = policy({ 'style-src': [styleSource], 'img-src': self })

type Page = {
  /** Of the tab. */
  readonly title: string
  readonly heading: string
  readonly subtitle: string
  /** HTML: texts in it must be escaped. */
  readonly content: string
  readonly width: 'narrow' | 'wide'
  /** The path of the icon. */
  readonly icon: string
}

export const htmlPage = ({ title, heading, subtitle, content, width, icon: iconPath }: Page): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escaped(title)}</title>
<link rel="icon" type="image/svg+xml" href="${iconPath}">
<style>${style}</style>
</head>
<body>
<main class="${width}">
<header>${icon.replace('<svg', '<svg aria-hidden="true"')}<div><h1>${escaped(heading)}</h1><p>${escaped(subtitle)}</p></div></header>
${content}
</main>
</body>
</html>
`

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
