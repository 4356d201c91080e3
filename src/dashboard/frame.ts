import type { FastifyReply, FastifySchema } from 'fastify'
import { policy, self } from '../http/headers.ts'
import { type Html, html } from '../http/html.ts'
import { drawnIcon, headOf } from '../http/page.ts'
import type { Actor } from '../permissions.ts'
import * as at from './addresses.ts'
import { assets } from './assets.ts'
import { nameText, time, titleText, utc, whole } from './words.ts'

/** The frame of the operators' pages: one head, one header, one script that keeps `<main>` up to date. */

/**
 * The sources from which a page of the dashboard may load: files of this host, no inline scripts.
 *
 * @param styles sources of styles beside the files of this host
 */
export const pagePolicy = (...styles: string[]) =>
  policy({
    'script-src': self,
    'style-src': [...self, ...styles],
    'img-src': self,
    'font-src': self,
    'connect-src': self,
    'worker-src': self,
    'base-uri': self,
    'form-action': self,
  })

/** The options of a route of pages. helmet writes into `config`: each has its own. */
export const pageRoute = <Schema extends FastifySchema>(schema: Schema) => ({
  config: { permission: 'anyone' } as const,
  helmet: pagePolicy(),
  schema,
})

export const sendHtml = (reply: FastifyReply, text: string) => reply.type('text/html; charset=utf-8').send(text)

export const sendPage = (reply: FastifyReply, shell: Shell) =>
  sendHtml(reply, page({ actor: reply.request.actor, ...shell }))

export type Shell = {
  readonly title: string
  /** The first line of the page, where it is not the title. */
  readonly heading?: string
  /** The time at which a page of the current state was read. */
  readonly asOf?: Date
  /** The user; null before the login. Default: that of the request. */
  readonly actor?: Actor | null
  readonly content: Html
  /** What was searched for. */
  readonly q?: string | null
  /** The address of the page in the navigation that this one belongs to. */
  readonly within?: string
  /** Whether the script requests the page again and again. */
  readonly isLive?: boolean
  /** `narrow`: a form, or a sentence. */
  readonly width?: 'narrow' | 'wide'
}

const navigation = [
  { href: at.nowPath, text: 'Now' },
  { href: at.runsPath, text: 'Runs' },
  { href: at.refusalsPath, text: 'Refusals' },
  { href: at.applicationsPath, text: 'Applications' },
  { href: at.workersPath, text: 'Workers' },
  { href: at.tokensPath, text: 'Tokens' },
  { href: at.auditPath, text: 'Audit' },
  { href: at.retentionPath, text: 'Retention' },
  { href: `${at.boardPath}/`, text: 'Queue board' },
] as const

function page({ title, actor = null, content, within, asOf, isLive = false, width = 'wide', ...of }: Shell): string {
  const heading = html`<h1>${whole(titleText(of.heading ?? title))}</h1>`
  return `${headOf(`${titleText(title)} - Gatewright`, at.iconPath)}${html`<link rel="stylesheet" href="${assets.style.path}">
${actor !== null && html`<script src="${assets.script.path}" defer></script>`}
</head>
<body class="${width}">
<a class="skip" href="#main">Skip to the content</a>
${header(actor, within, of.q)}
${isLive && html`<p id="live" class="live" role="status" hidden></p>`}
<main id="main" tabindex="-1"${isLive && html` data-live="${at.changesPath}"`}>
${asOf === undefined ? heading : html`<div class="head">${heading}<p class="quiet">As of ${time(asOf)}.</p></div>`}
${content}
</main>
</body>
</html>
`}`
}

export const header = (actor: Actor | null, within?: string, q: string | null = null): Html => html`<header>
<p class="brand">${drawnIcon}<span>Gatewright</span></p>
${
  actor !== null &&
  html`<form role="search" action="${at.searchPath}"><input type="search" name="q" value="${q}" maxlength="200" aria-label="Search" placeholder="Search" title="An application, a user, an owner, a run or a request" autocomplete="off" spellcheck="false"></form>
<nav aria-label="Pages"><ul>
${navigation.map(({ href, text }) => html`<li><a href="${href}"${href === within && html` aria-current="page"`}>${text}</a></li>`)}
</ul></nav>
<p class="user">${timesLink()} <span title="${nameText(actor.username)}">${nameText(actor.username)}</span> <a href="${at.logoutPath}">Log out</a></p>`
}
</header>`

/** The zone of a page's times, with a link to choose another one. `times.ts` puts the zone of the caller in. */
export const timesLink = (zone = utc, next: string = at.nowPath): Html =>
  html`<a id="times" href="${at.timesPath}?next=${encodeURIComponent(next)}" data-zone="${zone}">Times in ${zone}</a>`

export const messagePage = (title: string, text: string): Shell => ({
  title,
  width: 'narrow',
  content: html`<p class="alert" role="alert">${text}</p>
<p><a class="button" href="${at.nowPath}">Back to the first page</a></p>`,
})
