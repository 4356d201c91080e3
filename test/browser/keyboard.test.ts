import type { Browser, Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Installation, installation, type Made, needs, openBrowser, visit } from '../support/kit.ts'
import { put, statesOf } from '../support/operations.ts'

/** The operators' pages without a mouse: by Tab and Enter, and with what is focused always in sight. */

/** What has the focus, as it is announced. */
type Stop = { readonly name: string; readonly isMarked: boolean; readonly isInSight: boolean }

const stopText = `(() => {
  const found = document.activeElement
  const { top, bottom, left, right } = found.getBoundingClientRect()
  return {
    name: (found.labels?.[0] ?? found).textContent.trim(),
    // The browser itself has it between the last stop of a page and the first one.
    isMarked: found === document.body || getComputedStyle(found).outlineStyle !== 'none',
    isInSight: bottom > 0 && right > 0 && top < innerHeight && left < innerWidth,
  }
})()`

const stop = (page: Page): Promise<Stop> => page.evaluate<Stop>(stopText)

/** Goes on from stop to stop, each of which is in sight. @returns how many it took */
async function tabTo(page: Page, name: string, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<number> {
  for (let stops = 1; stops <= 60; stops += 1) {
    await page.keyboard.press(key)
    const there = await stop(page)
    expect(there).toMatchObject({ isMarked: true, isInSight: true })
    if (there.name === name) return stops
  }
  throw new Error(`no stop is called ${name}`)
}

async function enter(page: Page, heading: string): Promise<void> {
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: heading, exact: true, level: 1 }).waitFor()
  await page.waitForLoadState()
}

describe.runIf(needs('chromium'))("the operators' pages by keyboard", () => {
  let service: Installation
  let browser: Browser
  let origin: string
  let operator: Made

  beforeAll(async () => {
    service = await installation()
    origin = await service.app.listen({ host: '127.0.0.1', port: 0 })
    browser = await openBrowser()
    operator = await service.make.user({ permissions: ['view_queue', 'manage_queue', 'view_run'] })
    await put(service, 'is-applied')
    await statesOf(service).broken('is-broken')
  })

  const ways = [
    { how: 'with script', javaScriptEnabled: true, width: 1_280 },
    { how: 'without script', javaScriptEnabled: false, width: 1_280 },
    { how: 'at 360 pixels', javaScriptEnabled: true, width: 360 },
  ]

  async function logIn({ javaScriptEnabled, width }: (typeof ways)[number]): Promise<Page> {
    const { page } = await visit(browser, origin, { javaScriptEnabled })
    await page.setViewportSize({ width, height: 700 })
    await page.goto('/admin/')
    if ((await stop(page)).name !== 'Access token') await tabTo(page, 'Access token')
    await page.keyboard.type(operator.token)
    await enter(page, 'Now')
    return page
  }

  test.each(ways)('$how: the queue is paused, with a reason, and resumed', async (way) => {
    const page = await logIn(way)
    await tabTo(page, 'Pause the queue')
    await enter(page, 'Pause the queue?')
    // Enter that is pressed twice does nothing.
    expect(await stop(page)).toEqual({ name: 'Cancel', isMarked: true, isInSight: true })
    await enter(page, 'Now')
    expect(await service.queue.isPaused()).toBe(false)

    await tabTo(page, 'Pause the queue')
    await enter(page, 'Pause the queue?')
    expect(await tabTo(page, 'Why? (optional)', 'Shift+Tab')).toBe(1)
    await page.keyboard.type(`new disks, ${way.how}`)
    expect([await tabTo(page, 'Cancel'), await tabTo(page, 'Pause the queue')]).toEqual([1, 1])
    await enter(page, 'Now')
    expect(await service.queue.isPaused()).toBe(true)
    await page.getByRole('list', { name: 'Parts' }).getByText(`new disks, ${way.how}`).waitFor()

    await tabTo(page, 'Resume the queue')
    await enter(page, 'Resume the queue?')
    expect((await stop(page)).name).toBe('Cancel')
    expect(await tabTo(page, 'Resume the queue')).toBe(1)
    await enter(page, 'Now')
    expect(await service.queue.isPaused()).toBe(false)
  })

  test.each(ways)('$how: runs are narrowed by an outcome and by a user, and one is opened', async (way) => {
    const page = await logIn(way)
    // Past the links that each page begins with.
    await tabTo(page, 'Runs')
    await enter(page, 'Runs')
    const runs = page.getByRole('region', { name: 'Runs' }).getByRole('link')
    expect(await runs.allTextContents()).toEqual(['apply radius is-broken', 'apply radius is-applied'])
    expect(await tabTo(page, 'Skip to the content')).toBe(1)
    await page.keyboard.press('Enter')
    await tabTo(page, 'Outcome')
    await page.keyboard.type('failed')
    await tabTo(page, 'Who')
    await page.keyboard.type('admin')
    await tabTo(page, 'Show')
    await enter(page, 'Runs')
    await page.waitForURL(
      (url) => url.searchParams.get('outcome') === 'failed' && url.searchParams.get('who') === 'admin',
    )
    expect(await runs.allTextContents()).toEqual(['apply radius is-broken'])
    await tabTo(page, 'apply radius is-broken')
    await enter(page, 'apply radius is-broken')
  })
})
