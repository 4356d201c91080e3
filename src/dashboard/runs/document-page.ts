import { html } from '../../http/html.ts'
import type { Actor } from '../../permissions.ts'
import { documentPath, runPagePath, runsPath } from '../addresses.ts'
import { page } from '../frame.ts'
import { number } from '../words.ts'

/** /admin/runs/{id}/document/: what was sent, with its secrets masked. */

/** Characters of a page: their HTML may be longer. */
const mostText = 40_000

/** @param at from 1 @returns null when there is no such page */
export function documentPage(
  run: { readonly id: string; readonly title: string; readonly blueprint: string },
  at: number,
  actor: Actor,
): string | null {
  const { id, title, blueprint } = run
  const pages = pagesOf(blueprint)
  const text = pages[at - 1]
  if (text === undefined) return null
  return page({
    title: `Document of ${title}`,
    actor,
    within: runsPath,
    content: html`<h1>Document of ${title}</h1>
<p><a href="${runPagePath(id)}">Back to the run</a></p>
${pages.length > 1 && html`<p class="quiet">Page ${number(at)} of ${number(pages.length)}.</p>`}
${text === '' ? html`<p>The document is no longer stored.</p>` : html`<div class="card scroll" role="region" aria-label="Document" tabindex="0"><pre>${text}</pre></div>`}
<p class="choice">${at > 1 && html`<a class="button" href="${documentPath(id)}?page=${at - 1}">Before</a>`}
${at < pages.length && html`<a class="button" href="${documentPath(id)}?page=${at + 1}">Next</a>`}</p>`,
  })
}

/** Cut at ends of lines, and a line that is too long for a page within it. */
export function pagesOf(text: string): readonly string[] {
  const pages: string[] = []
  let rest = text
  while (rest.length > mostText) {
    const end = rest.lastIndexOf('\n', mostText - 1) + 1 || mostText
    pages.push(rest.slice(0, end))
    rest = rest.slice(end)
  }
  return [...pages, rest]
}
