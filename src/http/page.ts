import { createHash } from 'node:crypto'
import { policy, self } from './headers.ts'
import { icon } from './icon.ts'

/** The frame of the product's own pages. They work without JavaScript and load nothing but the icon. */

const style = `
:root { color-scheme: light dark; --page: #f1f5f9; --card: #fff; --text: #0f172a; --soft: #475569; --line: #cbd5e1; --field: #fff;
  --brand: #1d4ed8; --brand-over: #1e40af; --on-brand: #fff; --bad: #b91c1c; --bad-soft: #fef2f2; --bad-line: #fecaca }
@media (prefers-color-scheme: dark) { :root { --page: #0b1120; --card: #131c2e; --text: #e2e8f0; --soft: #94a3b8; --line: #334155; --field: #0b1120;
  --brand: #60a5fa; --brand-over: #93c5fd; --on-brand: #0b1120; --bad: #fca5a5; --bad-soft: #2a1215; --bad-line: #7f1d1d } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; grid-template-columns: minmax(0, 1fr); place-items: center; padding: 1.5rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif }
main { width: 100%; max-width: 25rem; padding: 2rem; background: var(--card); border: 1px solid var(--line); border-radius: .875rem;
  box-shadow: 0 1px 2px rgb(15 23 42 / .06), 0 12px 32px rgb(15 23 42 / .08) }
header { display: flex; align-items: center; gap: .75rem; margin-bottom: 1.5rem }
header svg { flex: none; width: 2.5rem; height: 2.5rem }
header p { margin: 0; color: var(--soft); font-size: .875rem }
h1 { margin: 0; font-size: 1.25rem; line-height: 1.3 }
label { display: block; margin-bottom: .375rem; font-weight: 600 }
input { width: 100%; padding: .625rem .75rem; font: inherit; color: inherit; background: var(--field); border: 1px solid var(--line); border-radius: .5rem }
input[aria-invalid] { border-color: var(--bad) }
.hint { margin: .5rem 0 1.5rem; color: var(--soft); font-size: .875rem }
button, .button { display: block; width: 100%; padding: .625rem 1rem; font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer;
  color: var(--on-brand); background: var(--brand); border: 1px solid var(--brand); border-radius: .5rem }
button:hover { background: var(--brand-over); border-color: var(--brand-over) }
.button { margin-top: .75rem; color: var(--text); background: none; border-color: var(--line) }
:focus-visible { outline: 3px solid var(--brand); outline-offset: 2px }
form + form { margin-top: .75rem }
main.wide { max-width: 44rem }
main > :last-child { margin-bottom: 0 }
a { color: var(--brand) }
h2 { margin: 1.75rem 0 .5rem; font-size: 1rem }
pre { margin: .5rem 0 0; padding: .875rem 1rem; overflow-x: auto; background: var(--page); border: 1px solid var(--line); border-radius: .5rem; font-size: .8125rem }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
p code { white-space: nowrap }
dl.links { margin: 1rem 0 0 }
dl.links dt { color: var(--text) }
dl.links dd { color: var(--soft) }
@media (max-width: 34rem) { main { padding: 1.25rem } dl.links { grid-template-columns: 1fr; gap: 0 } dl.links dd { margin-bottom: .75rem } }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .375rem 1rem; margin: 0 0 1.5rem }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
.alert { margin: 0 0 1.25rem; padding: .625rem .75rem; color: var(--bad); background: var(--bad-soft); border: 1px solid var(--bad-line); border-radius: .5rem; font-size: .9375rem }
`

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
