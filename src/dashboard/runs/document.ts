import { html } from '../../http/html.ts'
import type { Actor } from '../../permissions.ts'
import type { Run } from '../../views/run.ts'
import { documentPath, runPagePath, runsPath } from '../addresses.ts'
import { page } from '../frame.ts'
import { moves } from '../table.ts'
import { number } from '../words.ts'

/** /admin/runs/{id}/document/: the document that was sent, with its secrets masked. */

/** The most characters of a page. */
const mostText = 40_000

/** @param at the number of the page, from 1 @returns null when there is no such page */
export function documentPage(
  { id, title, blueprint }: Pick<Run, 'id' | 'title' | 'blueprint'>,
  at: number,
  actor: Actor,
): string | null {
  const pages = pagesOf(blueprint)
  const text = pages[at - 1]
  if (text === undefined) return null
  return page({
    title: `Document of ${title}`,
    actor,
    within: runsPath,
    content: html`<p><a href="${runPagePath(id)}">Back to the run</a></p>
${pages.length > 1 && html`<p class="quiet">Page ${number(at)} of ${number(pages.length)}.</p>`}
${text === '' ? html`<p>The document is no longer stored.</p>` : html`<div class="card scroll" role="region" aria-label="Document" tabindex="0"><pre>${text}</pre></div>`}
${moves({
  Before: at > 1 && `${documentPath(id)}?page=${at - 1}`,
  Next: at < pages.length && `${documentPath(id)}?page=${at + 1}`,
})}`,
  })
}

/** Splits a text at ends of lines, and a line that is too long for a page within it. */
export function pagesOf(text: string): readonly string[] {
  const pages: string[] = []
  let from = 0
  do {
    const end = endOfPage(text, from)
    pages.push(text.slice(from, end))
    from = end
  } while (from < text.length)
  return pages
}

function endOfPage(text: string, from: number): number {
  const most = from + mostText
  if (most >= text.length) return text.length
  // A character of two units is kept whole.
  const end = text.slice(from, most).isWellFormed() ? most : most - 1
  const line = text.lastIndexOf('\n', end - 1) + 1
  return line > from ? line : end
}
