import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

type Result = { id: string; nodes: { html: string; failureSummary?: string }[] }

/** What is wrong with a page for people who see, hear or handle it otherwise, by all rules of axe: each with its first element. */
export async function accessibilityViolations(page: Page): Promise<string[]> {
  await page.evaluate(source)
  const found = await page.evaluate<Result[]>('axe.run().then(({ violations }) => violations)')
  return found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)
}
