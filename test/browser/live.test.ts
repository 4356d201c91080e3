import type { Browser, Locator, Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { startStack } from '../api/stack.ts'
import { breakable } from '../support/breakable.ts'
import { fillLogIn, openBrowser, visit } from '../support/browser.ts'
import { freshDatabase, type Installation, installation, type Made, needs, until } from '../support/kit.ts'

/** The pages wait for changes. Their clock stands still: so nothing is asked for but because of one. */

async function logIn(page: Page, token: string): Promise<void> {
  await page.goto('/admin/')
  await fillLogIn(page, token)
  await page.getByRole('heading', { name: 'Now' }).waitFor()
}

describe.runIf(needs('chromium'))("the operators' pages, which wait for changes", () => {
  let service: Installation
  let browser: Browser
  let origin: string
  let operator: Made

  beforeAll(async () => {
    service = await installation()
    origin = await service.app.listen({ host: '127.0.0.1', port: 0 })
    browser = await openBrowser()
    operator = await service.make.user({ permissions: ['view_queue', 'view_run', 'view_application'] })
  })

  const waiting = async () => {
    const { text } = await service.admin.get('/-/metrics/')
    return Number(/^gatewright_waits\{kind="pages"\} (\d+)$/m.exec(text)?.[1])
  }

  async function open(path = '/admin/'): Promise<Page> {
    const { page } = await visit(browser, origin)
    await logIn(page, operator.token)
    // The first page waits, too: that ends here, so that its answer is not taken for that of the second.
    await page.goto('about:blank')
    await page.clock.install()
    const revision = page.waitForResponse('**/admin/changes/**')
    await page.goto(path)
    await revision
    await page.getByText('Updates by itself.').waitFor()
    return page
  }

  /** A second for the least time between two questions; the page asks by itself after three at the earliest. */
  const comes = (page: Page, wanted: Locator, what: string) =>
    until(what, async () => {
      await page.clock.runFor(100)
      return (await wanted.count()) > 0
    })

  test('a run that ends is on the page, long before the page would ask by itself', async () => {
    const page = await open()
    await service.admin.submit('radius', 'is-told')
    const link = page.getByRole('link', { name: 'apply radius is-told' })
    const from = await page.evaluate<number>('performance.now()')
    await comes(page, link, 'the run to be on the page')
    expect((await page.evaluate<number>('performance.now()')) - from).toBeGreaterThan(0)
    expect(await link.count()).toBe(1)
    await page.close()
  })

  test('a failure that is repaired, and a new application, are on their pages', async () => {
    const { breaks, heals } = await breakable(service.db)
    const put = async () => (await service.admin.submit('radius', 'mended')).status
    await breaks('mended', 'XX002', 'a broken index')
    expect(await put()).toBe(500)
    const { id } = await service.db.run.findFirstOrThrow({ where: { slug: 'mended' } })
    const [run, applications] = [await open(`/admin/runs/${id}/`), await open('/admin/applications/')]
    const [repaired, listed] = [run.getByText('Repaired by'), applications.getByRole('row', { name: 'mended' })]
    expect([await repaired.count(), await listed.count()]).toEqual([0, 0])
    await heals('mended')
    expect(await put()).toBe(200)
    await comes(run, repaired, 'the page of the run to say that it is repaired')
    await comes(applications, listed, 'the application to be in the list')
    for (const page of [run, applications]) await page.close()
  })

  test('a page that is left while it waits logs nothing that calls for attention', async () => {
    const page = await open()
    await until('the page to wait', async () => (await waiting()) > 0)
    const before = service.log.length
    await page.goto('about:blank')
    await until('the wait to end', async () => (await waiting()) === 0)
    await page.close()
    const lines = service.log.slice(before).map((line): { level: number; msg: string } => JSON.parse(line))
    expect(lines.filter(({ level }) => level >= 40)).toEqual([])
    expect(lines.filter(({ msg }) => /closed|already sent|aborted/i.test(msg))).toEqual([])
  })

  test('a hidden page does not wait, and waits again when it is shown', async () => {
    const page = await open()
    const hide = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`)
    const waits = async (count: number) => {
      await page.clock.runFor(100)
      return (await waiting()) === count
    }
    await until('the page to wait', () => waits(1))
    await hide(true)
    await until('the wait to end', () => waits(0))
    await hide(false)
    await until('the page to wait again', () => waits(1))
    expect(await waiting()).toBe(1)
    await page.close()
  })
})

describe.runIf(needs('chromium'))('the first page, in real time', () => {
  test('names a second worker, of another version, within 15 s after it has fallen silent', async () => {
    const { url, db } = await freshDatabase()
    const stack = await startStack({ databaseUrl: url, redisUrl: null })
    const [one, other] = [await stack.startWorker(), await stack.startWorker()]
    const rename = () => db.workerProcess.updateMany({ where: { processId: other.pid }, data: { version: '0.1.9' } })
    await until('the worker to be known', async () => (await rename()).count > 0)
    const { page, errors } = await visit(await openBrowser(), stack.url)
    await logIn(page, 'a-token-for-the-first-admin')
    const workers = page.getByRole('list', { name: 'Parts' }).getByRole('listitem').filter({ hasText: 'worker' })
    await workers.getByText('2 workers').waitFor()
    await page.getByText('Updates by itself.').waitFor()
    try {
      // It is there, and says nothing any more.
      other.signal('SIGSTOP')
      await workers.getByText(new RegExp(`, ${other.pid}: not heard for \\d+ s`)).waitFor({ timeout: 15_000 })
      await page.getByText('1 worker silent').waitFor()
    } finally {
      other.signal('SIGCONT')
    }
    await workers.getByText('2 workers').waitFor({ timeout: 15_000 })
    expect(errors).toEqual([])
    await page.close()
    await Promise.all([one.stop(), other.stop()])
  })
})
