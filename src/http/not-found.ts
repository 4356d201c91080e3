import type { FastifyRequest } from 'fastify'
import { basePath, docsPath, faviconPath, homePath } from '../paths.ts'
import { isReading, weightOf } from './headers.ts'
import { html } from './html.ts'
import { htmlPage } from './page.ts'

/** The page for a person who opens an address that does not exist. Programs get JSON, and below `/api/` all callers do. */

export const notFoundPage = htmlPage({
  title: 'Not found - Gatewright',
  heading: 'There is nothing here',
  subtitle: '404 Not Found',
  content: html`<p>Check the address, or start from one of these.</p>
<a class="button" href="${homePath}">Start page</a>
<a class="button" href="${docsPath}">Documentation of the API</a>`,
  width: 'narrow',
  icon: faviconPath,
})

export const asksForPage = (request: FastifyRequest): boolean =>
  isReading(request.method) && !/^\/api(\/|\?|$)/i.test(request.url.slice(basePath.length)) && prefersHtml(request)

/**
 * Whether a browser asks: it names `text/html`, curl sends any type (RFC 9110, section 12.5.1). JSON that is named
 * with at least the same weight comes first.
 */
export function prefersHtml({ headers: { accept = '' } }: Pick<FastifyRequest, 'headers'>): boolean {
  const html = weightOf('text/html', accept)
  return html > 0 && html > weightOf('application/json', accept)
}
