import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { fillLogIn } from '../support/browser.ts'

/** An operator on call: finds everything by roles and by what is written, and counts the pages that this takes. */

/** A row of a table, by the heads of its columns. */
export type Row = Readonly<Record<string, string>>

const mostNavigations = 3

export class OnCall {
  readonly page: Page
  #navigations = 0

  constructor(page: Page) {
    this.page = page
    page.on('framenavigated', (frame) => {
      if (frame === page.mainFrame()) this.#navigations += 1
    })
  }

  async logIn(token: string): Promise<void> {
    await this.page.goto('/admin/')
    await fillLogIn(this.page, token)
    await this.heading('Now')
  }

  /** Answers a question from the first page on. @throws when it takes too many pages */
  async ask<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    await this.follow('Now')
    await this.heading('Now')
    this.#navigations = 0
    const answer = await question()
    expect(this.#navigations, 'pages that it took').toBeLessThanOrEqual(mostNavigations)
    return answer
  }

  async follow(link: string | RegExp, within: Pick<Locator, 'getByRole'> = this.page): Promise<void> {
    await within.getByRole('link', { name: link, exact: true }).first().click()
    await this.page.waitForLoadState()
  }

  async show(): Promise<void> {
    await this.page.getByRole('button', { name: 'Show' }).click()
    await this.page.waitForLoadState()
  }

  heading(name: string): Promise<void> {
    return this.page.getByRole('heading', { name, exact: true, level: 1 }).waitFor()
  }

  region(name: string): Locator {
    return this.page.getByRole('region', { name, exact: true })
  }

  async table(name: string): Promise<readonly Row[]> {
    const rows = this.region(name).getByRole('row')
    await rows.first().waitFor()
    const [heads = [], ...lines] = await rows.evaluateAll((all) =>
      all.map((row) => [...row.children].map((cell) => (cell as unknown as { innerText: string }).innerText.trim())),
    )
    return lines.map((cells) => Object.fromEntries(cells.map((cell, index) => [heads[index], cell])))
  }
}
