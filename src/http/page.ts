import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { policy, self } from './headers.ts'
import { type Html, html, trusted } from './html.ts'
import { icon } from './icon.ts'

/** The frame of the pages that need no login. They work without JavaScript and load nothing but the icon. */

const style = readFileSync(new URL('page.css', import.meta.url), 'utf8')

/** Allows the one inline style that has this text, in a Content-Security-Policy. */
export const hashSource = (style: string): string => `'sha256-${createHash('sha256').update(style).digest('base64')}'`

/** The policy of a page without forms. */
export const plainPolicy = policy({ 'style-src': [hashSource(style)], 'img-src': self })

type Page = {
  /** The title of the tab. */
  readonly title: string
  readonly heading: string
  readonly subtitle: string
  readonly content: Html
  readonly width: 'narrow' | 'wide'
  readonly icon: string
}

/** The icon in a page whose text names the product. */
export const drawnIcon = trusted(icon.replace('<svg', '<svg aria-hidden="true"'))

/** The beginning of all pages. @param iconPath the path of the icon */
export const headOf = (title: string, iconPath: string): Html => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="icon" type="image/svg+xml" href="${iconPath}">
`

export const htmlPage = ({ title, heading, subtitle, content, width, icon: iconPath }: Page): string =>
  `${headOf(title, iconPath)}${html`<style>${trusted(style)}</style>
</head>
<body>
<main class="${width}">
<header>${drawnIcon}<div><h1>${heading}</h1><p>${subtitle}</p></div></header>
${content}
</main>
</body>
</html>
`}`
