import type { Browser, Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { accessibilityViolations } from '../support/axe.ts'
import { type Installation, installation, needs, openBrowser, visit } from '../support/kit.ts'
import { type Description, type Operation, readDescription } from '../support/openapi.ts'

describe.runIf(needs('chromium'))('the API described for people, in Chromium', () => {
  let service: Installation
  let api: Description
  let browser: Browser
  let origin: string

  beforeAll(async () => {
    service = await installation()
    api = await readDescription(service.app)
    origin = await service.app.listen({ host: '127.0.0.1', port: 0 })
    browser = await openBrowser()
  })

  /** A visitor of the page, and the errors: other hosts, broken policies, failed requests, exceptions. */
  async function open(path = '/docs/', colorScheme: 'light' | 'dark' = 'light') {
    const visitor = await visit(browser, origin)
    const { page } = visitor
    await page.emulateMedia({ colorScheme })
    const failed: string[] = []
    page.on('requestfailed', (request) => failed.push(request.url()))
    page.on('response', (response) => response.status() >= 400 && failed.push(`${response.status()} ${response.url()}`))
    page.on('console', (message) => message.type() === 'error' && failed.push(message.text()))
    await page.goto(path)
    await page.locator('.opblock').first().waitFor()
    return { page, wrong: () => [...visitor.errors, ...failed] }
  }

  const operationIn = (page: Page, id: string) => page.locator(`.opblock[id$="${id}"]`)

  test('shows every operation and sends nothing to other hosts', async () => {
    const { page, wrong } = await open()
    expect(await page.title()).toBe('Gatewright API')
    expect(await page.locator('.opblock').count()).toBe(api.operations.length)
    expect(await page.locator('.opblock').first().getAttribute('id')).toMatch(/core_transactional_applications_update$/)
    for (const { operationId, path } of api.operations) {
      const text = await operationIn(page, operationId).locator('.opblock-summary-path').innerText()
      expect(text.replace(/\u200b/g, '')).toBe(path)
    }
    expect(wrong()).toEqual([])
  })

  /** One operation of each form: Swagger UI reads the whole description again for each one that is opened, which takes a second. */
  const ofEachForm = () => {
    const form = ({ method, parameters, requestBody }: Operation) =>
      JSON.stringify([method, Boolean(parameters?.length), Boolean(requestBody)])
    return [...new Map(api.operations.map((operation) => [form(operation), operation])).values()]
  }

  test('shows the request, the answers and the permissions of operations of each form', async () => {
    const { page, wrong } = await open()
    const operations = ofEachForm()
    expect(operations.length).toBeGreaterThanOrEqual(6)
    for (const { operationId, responses, 'x-permission': needed } of operations) {
      const operation = operationIn(page, operationId)
      await operation.locator('.opblock-summary-control').click()
      await operation.locator('tr.response').first().waitFor()
      expect(await operation.locator('tr.response').count()).toBe(Object.keys(responses).length)
      // The exchange needs no permission, but a rule of one of these.
      const named = needed[0] === 'anyone' ? 'trusted issuers' : needed[0]
      expect(await operation.locator('.opblock-description').innerText()).toContain(named)
      expect(await operation.locator('.highlight-code, .example').first().isVisible()).toBe(true)
      await operation.locator('.opblock-summary-control').click()
    }
    expect(wrong()).toEqual([])
  })

  test('follows the colours of the system, also when they change', async () => {
    const { page, wrong } = await open('/docs/', 'dark')
    /** The brightness, from 0 (black) to 255. */
    const brightness = async (selector: string, property: 'backgroundColor' | 'color') => {
      const script = `getComputedStyle(document.querySelector(${JSON.stringify(selector)})).${property}`
      const color = await page.evaluate<string>(script)
      return Math.max(...(color.match(/\d+/g) ?? []).slice(0, 3).map(Number))
    }
    const operation = operationIn(page, 'core_transactional_applications_update')
    await operation.locator('.opblock-summary-control').click()
    await operation.locator('tr.response').first().waitFor()
    const texts = [
      ...['.info .title', '.info p', '.opblock-tag', '.opblock-summary-path', '.opblock-summary-description'],
      ...['.parameter__name', '.examples-select__section-label', '.header-col', '.response-col_status'],
    ]
    expect(await brightness('html', 'backgroundColor')).toBeLessThan(60)
    for (const text of texts) expect.soft(await brightness(text, 'color'), text).toBeGreaterThan(150)
    await page.emulateMedia({ colorScheme: 'light' })
    await expect.poll(() => brightness('.info .title', 'color')).toBeLessThan(100)
    expect(wrong()).toEqual([])
  })

  test.each(['light', 'dark'] as const)(
    'has no accessibility violation, also of an open operation, %s',
    async (scheme) => {
      const { page, wrong } = await open('/docs/', scheme)
      const put = operationIn(page, 'core_transactional_applications_update')
      await put.locator('.opblock-summary-control').click()
      await put.locator('tr.response').first().waitFor()
      await put.getByRole('button', { name: 'Try it out' }).click()
      await put.getByRole('textbox', { name: 'Request body' }).waitFor()
      await put.getByRole('combobox', { name: 'dry_run' }).waitFor()
      for (const width of [1_280, 390]) {
        await page.setViewportSize({ width, height: 900 })
        expect.soft([width, await accessibilityViolations(page)]).toEqual([width, []])
        const tooWide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
        expect.soft([width, await page.evaluate(tooWide)]).toEqual([width, 0])
      }
      expect(wrong()).toEqual([])
    },
  )

  test('leads to the dashboard, and the address of an operation opens it', async () => {
    const { page, wrong } = await open()
    await operationIn(page, 'core_users_me_retrieve').locator('.opblock-summary-control').click()
    await page.waitForURL('**/docs/#/core/core_users_me_retrieve')
    const again = await open(new URL(page.url()).pathname + new URL(page.url()).hash)
    await operationIn(again.page, 'core_users_me_retrieve').locator('tr.response').first().waitFor()
    await page.getByRole('banner').getByRole('link', { name: 'Dashboard' }).click()
    await page.getByLabel('Access token').waitFor()
    await page.goto('/docs/')
    await page.getByRole('banner').getByRole('link', { name: 'Gatewright' }).click()
    await page.getByRole('heading', { name: 'Gatewright', exact: true }).waitFor()
    expect(wrong()).toEqual([])
  })

  test('sends a request with the given token', async () => {
    const { page, wrong } = await open('/docs')
    await page.getByRole('button', { name: 'Authorize' }).click()
    await page.locator('#auth-bearer-value, [aria-label="auth-bearer-value"]').fill((await service.make.user()).token)
    await page.getByRole('button', { name: 'Apply credentials' }).click()
    await page.getByRole('button', { name: 'Close' }).click()
    const operation = operationIn(page, 'core_users_me_retrieve')
    await operation.locator('.opblock-summary-control').click()
    await operation.getByRole('button', { name: 'Try it out' }).click()
    const answered = page.waitForResponse((response) => response.url() === `${origin}/api/v3/core/users/me/`)
    await operation.getByRole('button', { name: 'Execute' }).click()
    expect((await answered).status()).toBe(200)
    await operation.locator('.live-responses-table').getByText('system_permissions').first().waitFor()
    expect(wrong()).toEqual([])
  })
})
