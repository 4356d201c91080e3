import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { installation, needs, openBrowser, visit } from '../support/kit.ts'

describe.runIf(needs('chromium'))('the first page in Chromium', () => {
  let browser: Browser
  let origin: string

  beforeAll(async () => {
    const service = await installation({ workers: 'none' })
    origin = await service.app.listen({ host: '127.0.0.1', port: 0 })
    browser = await openBrowser('chromium')
  })

  const brightness = (color: string) => Math.max(...(color.match(/\d+/g) ?? []).slice(0, 3).map(Number))

  test('names the product, and leads to docs and dashboard', async () => {
    const { page, errors } = await visit(browser, origin)
    const icon = page.waitForResponse((response) => response.url() === `${origin}/favicon.svg`)
    await page.goto('/')
    expect(await page.title()).toBe('Gatewright')
    expect((await icon).status()).toBe(200)
    expect(await page.locator('pre').innerText()).toContain(`curl -i -X PUT \\\n  ${origin}/api/v3/`)
    await page.getByRole('link', { name: 'Documentation' }).click()
    await page.locator('.opblock').first().waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'Dashboard' }).click()
    await page.getByLabel('Access token').waitFor()
    expect(errors).toEqual([])
  })

  test('a mistyped address leads back to it', async () => {
    const { page, errors } = await visit(browser, origin)
    expect((await page.goto('/dosc/'))?.status()).toBe(404)
    await page.getByRole('heading', { name: 'There is nothing here' }).waitFor()
    await page.getByRole('link', { name: 'Start page' }).click()
    await page.getByRole('heading', { name: 'Gatewright' }).waitFor()
    expect(errors).toEqual([])
  })

  test.each(['/', '/nothing/'])('%s fits a phone, and follows the colours of the system', async (path) => {
    const { page, errors } = await visit(browser, origin)
    await page.setViewportSize({ width: 360, height: 640 })
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.goto(path)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
    const background = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
    expect(brightness(await background())).toBeLessThan(60)
    await page.emulateMedia({ colorScheme: 'light' })
    expect(brightness(await background())).toBeGreaterThan(200)
    expect(errors).toEqual([])
  })
})
