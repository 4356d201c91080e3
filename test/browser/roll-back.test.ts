import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { fillLogIn, openBrowser, visit } from '../support/browser.ts'
import { answered, type Installation, installation, type Made, needs } from '../support/kit.ts'

/** An operator finds what changed, looks at the difference, and rolls it back, by what a person sees. */

describe.runIf(needs('chromium'))('a roll back in Chromium', () => {
  let service: Installation
  let browser: Browser
  let origin: string
  let operator: Made

  beforeAll(async () => {
    service = await installation()
    origin = await service.app.listen({ host: '127.0.0.1', port: 0 })
    browser = await openBrowser()
    operator = await service.make.user({
      permissions: [
        ...['view_queue', 'view_run', 'roll_back_run', 'view_user', 'view_application', 'view_radiusprovider'],
        ...['add_application', 'change_application', 'add_radiusprovider', 'change_radiusprovider'],
      ],
    })
  })

  test.each([
    { how: 'with script', javaScriptEnabled: true },
    { how: 'without script', javaScriptEnabled: false },
  ])('$how: from the application to the run that puts it back', async ({ how, javaScriptEnabled }) => {
    const slug = how.replace(' ', '-')
    const put = async (group: string) => answered(200, service.admin.submit('radius', slug, { app: { group } }))
    const groupOf = async () => (await service.db.application.findUniqueOrThrow({ where: { slug } })).group
    await put('First')
    await put('Second')
    const { page, errors } = await visit(browser, origin, { javaScriptEnabled })
    await page.goto(`/admin/applications/${slug}/`)
    await fillLogIn(page, operator.token)

    const created = page.getByRole('row', { name: 'created' }).last()
    await created.getByRole('link', { name: 'roll back to this' }).click()
    await page.getByRole('heading', { name: `Plan again or roll back: apply radius ${slug}` }).waitFor()
    await page.getByText('group: Second -> First').waitFor()
    await page.getByText('It would do this: 1 changed, 1 unchanged.').waitFor()
    await page.getByRole('link', { name: 'Cancel' }).click()
    await page.getByRole('link', { name: 'Plan again or roll back to this' }).click()
    // Meanwhile, someone else changes it.
    await put('Third')
    await page.getByLabel('Why? (optional)').fill('The shop is empty, CHG-1042')
    await page.getByRole('button', { name: 'Apply this plan' }).click()
    await page.getByRole('alert').getByText('Something changed after the plan: nothing was applied.').waitFor()
    expect(await groupOf()).toBe('Third')
    await page.getByText('group: Third -> First').waitFor()
    expect(await page.getByLabel('Why? (optional)').inputValue()).toBe('The shop is empty, CHG-1042')
    await page.getByRole('button', { name: 'Apply this plan' }).click()

    await page.getByText('The shop is empty, CHG-1042').waitFor()
    expect(await groupOf()).toBe('First')
    expect(new URL(page.url()).pathname).toMatch(/^\/admin\/runs\/[\da-f-]{36}\/$/)
    await page.getByRole('definition').filter({ hasText: operator.username }).waitFor()
    await page.getByText('group: Third -> First').waitFor()
    expect(errors).toEqual([])
  })
})
