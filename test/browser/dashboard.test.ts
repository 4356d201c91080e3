import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { jobId } from '../../src/queue/define.ts'
import { fillLogIn, openBrowser, type Visitor, visit } from '../support/browser.ts'
import { type Installation, installation, type QueueKind } from '../support/installation.ts'
import { applyPath, atEnd, example, type Made, needs } from '../support/kit.ts'

const secret = 'marker-client-secret-7f3a91'
const job = 'apply oauth2 grafana'

describe.runIf(needs('chromium'))('the dashboard in Chromium', () => {
  describe('with the queue on PostgreSQL', () => claims('postgres'))
  describe.runIf(needs('redis-server'))('with the queue on Redis', () => claims('redis'))
})

function claims(queue: QueueKind): void {
  let service: Installation
  let browser: Browser
  let origin: string
  let viewer: Made
  let manager: Made

  beforeAll(async () => {
    service = await installation({ queue })
    origin = await service.app.listen({ host: '127.0.0.1', port: 0 })
    browser = await openBrowser()
    viewer = await service.make.user({ permissions: ['view_queue'] })
    manager = await service.make.user({ permissions: ['view_queue', 'manage_queue'] })
    const answer = await service.admin.put(applyPath, await example('oauth2', { provider: { client_secret: secret } }))
    expect(answer.json).toMatchObject({ applied: true })
  })

  async function logIn(token: string): Promise<Visitor> {
    const visitor = await visit(browser, origin)
    await visitor.page.goto('/admin/queues/')
    await fillLogIn(visitor.page, token)
    return visitor
  }

  async function seeCompletedJob({ page }: Visitor): Promise<void> {
    await page.goto('/admin/queues/queue/apply?status=completed')
    await page.getByText(job).first().waitFor()
  }

  test('an operator logs in, sees the queue and opens a completed job; no answer has a secret', async () => {
    const operator = await logIn(viewer.token)
    const { page } = operator
    await page.getByRole('main').getByRole('link', { name: 'apply' }).first().click()
    await page.getByRole('link', { name: /completed/i }).click()
    await page.getByText(job).click()
    await page.getByText('returnValue').waitFor()
    const [run] = await service.db.run.findMany()
    await page.getByText(`"${run?.id}"`).first().waitFor()
    await page.getByText('Options', { exact: true }).click()
    await page.getByText('removeOnComplete').first().waitFor()

    expect(await page.title()).toContain('Gatewright queues')
    const answers = await operator.answers()
    expect(answers).toContain(job)
    expect(answers).not.toContain(secret)
    // What a run says may hold values: it is for those who may see the run.
    expect(answers).not.toContain('grafana\\" created')
    expect(answers).not.toContain(viewer.token)
    expect(operator.errors).toEqual([])
  })

  test('the login works without JavaScript; a wrong token is refused in a plain sentence', async () => {
    const visitor = await visit(browser, origin, { javaScriptEnabled: false })
    const { page } = visitor
    await page.goto('/admin/queues/queue/apply')
    expect(new URL(page.url()).pathname).toBe('/admin/login/')
    await page.getByLabel('Access token').fill('gw_a_wrong')
    const answered = page.waitForResponse((response) => response.request().method() === 'POST')
    await page.keyboard.press('Enter')
    expect((await answered).status()).toBe(401)
    expect(await page.getByRole('alert').textContent()).toBe('This access token is not valid.')
    expect(await page.getByLabel('Access token').inputValue()).toBe('')
    expect(await visitor.cookies()).toEqual([])

    await page.getByLabel('Access token').fill(viewer.token)
    await page.keyboard.press('Enter')
    await page.waitForURL('**/admin/queues/queue/apply')
    expect(await visitor.cookies()).toMatchObject([{ httpOnly: true, sameSite: 'Lax', path: '/admin', secure: false }])
    expect(visitor.errors).toEqual([])
  })

  test('a user who may only view sees no actions, and a forged one is refused', async () => {
    const reader = await logIn(viewer.token)
    await seeCompletedJob(reader)
    await reader.page.getByText(job).first().click()
    await reader.page.getByText('returnValue').waitFor()
    expect(await reader.page.getByText(/retry all|clean all/i).count()).toBe(0)
    const forged = await reader.page.evaluate(async () => {
      const { status } = await fetch('/admin/pause/', { method: 'POST' })
      return status
    })
    expect(forged).toBe(403)
    expect(await service.queue.isPaused()).toBe(false)
    expect(reader.errors).toEqual([])
  })

  const actions =
    /retry|clean|(pause|resume) (all|queue)|add job|obliterate|promote|empty|concurrency|rate limit|duplicate|update data/i

  test('the board offers no action to anyone, in no view', async () => {
    const operator = await logIn(manager.token)
    const { page } = operator
    const [run] = await service.db.run.findMany()
    for (const view of ['', 'queue/apply?status=completed', `queue/apply/${jobId(run?.id ?? '', 1)}`]) {
      await page.goto(`/admin/queues/${view}`)
      await page
        .getByRole('main')
        .getByText(view === '' ? 'apply' : job)
        .first()
        .waitFor()
      const offered: string[] = []
      const see = async () => void offered.push(...(await page.getByText(actions).allTextContents()))
      await see()
      expect(await page.locator('main [aria-haspopup=menu]:visible').count()).toBe(0)
      expect([view, offered]).toEqual([view, []])
    }
    expect(operator.errors).toEqual([])
  })

  test('the board has our header and our colours, in the light and in the dark', async () => {
    const { page, errors } = await logIn(viewer.token)
    const colours = () =>
      page.evaluate<string[]>(
        "['body', 'body > header'].map((each) => getComputedStyle(document.querySelector(each)).backgroundColor)",
      )
    const seen: string[][] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.goto('/admin/')
      const ours = await colours()
      await page.getByRole('link', { name: 'Queue board' }).click()
      await page.getByRole('main').getByText('apply').first().waitFor()
      await expect.poll(colours).toEqual(ours)
      seen.push(ours)
    }
    expect(seen[0]).not.toEqual(seen[1])
    expect(errors).toEqual([])
  })

  test('a job leads to its run, and the run to its job', async () => {
    const reader = await service.make.user({ permissions: ['view_queue', 'view_run'] })
    const operator = await logIn(reader.token)
    const { page } = operator
    await seeCompletedJob(operator)
    const opened = page.context().waitForEvent('page')
    await page.getByRole('link', { name: 'Run', exact: true }).first().click()
    const runPage = await opened
    await runPage.getByText('Changes: 2 created').waitFor()
    await runPage.getByRole('link', { name: 'on the queue board' }).click()
    await runPage.getByText('returnValue').waitFor()
    expect(operator.errors).toEqual([])
  })

  test('an operator pauses the queue, everyone sees by whom and since when, and resumes it', async () => {
    const operator = await logIn(manager.token)
    const { page } = operator
    await page.getByRole('link', { name: 'Now', exact: true }).click()
    await page.getByRole('link', { name: 'Pause the queue' }).click()
    await page.getByLabel('Why?').fill('new disks')
    await page.getByRole('button', { name: 'Pause the queue' }).click()
    await page.getByRole('listitem').getByText(`Queue paused by ${manager.username}`).first().waitFor()
    expect(await service.queue.isPaused()).toBe(true)

    const reader = await logIn(viewer.token)
    await reader.page.goto('/admin/queues/queue/apply')
    await reader.page.getByText(`The queue is paused, by ${manager.username} since`).first().waitFor()

    await page.getByRole('link', { name: 'Resume the queue' }).click()
    await page.getByText(', new disks.').waitFor()
    await page.getByRole('button', { name: 'Resume the queue' }).click()
    await page.getByRole('link', { name: 'Pause the queue' }).waitFor()
    expect(await service.queue.isPaused()).toBe(false)
    expect([...operator.errors, ...reader.errors]).toEqual([])
  })

  test('a form on another origin of the same site can neither act nor log out', async () => {
    const operator = await logIn(manager.token)
    const { page } = operator
    await page.getByText('Gatewright queues').first().waitFor()
    const foreign = await serveForm()
    for (const target of ['/admin/pause/', '/admin/logout/']) {
      await page.goto(`${foreign}?${origin}${target}`)
      const answered = page.waitForResponse((response) => response.url() === `${origin}${target}`)
      await page.getByRole('button').click()
      const response = await answered
      // The cookie was sent: the Origin is the reason for the refusal.
      expect((await response.request().allHeaders()).cookie).toContain('gatewright_admin=')
      expect(response.status()).toBe(403)
    }
    await seeCompletedJob(operator)
  })

  test('logging out, being deactivated or losing the token ends the session', async () => {
    const leaving = await logIn(viewer.token)
    const { page } = leaving
    await seeCompletedJob(leaving)
    await page.getByRole('link', { name: 'Log out' }).click()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Access token').waitFor()
    expect(await leaving.cookies()).toEqual([])

    const { db } = service
    const end = [
      ({ pk }: Made) => db.user.update({ where: { pk }, data: { isActive: false } }),
      ({ pk }: Made) => db.token.deleteMany({ where: { userPk: pk } }),
    ]
    for (const lose of end) {
      const operator = await service.make.user({ permissions: ['view_queue'] })
      const visitor = await logIn(operator.token)
      await seeCompletedJob(visitor)
      await lose(operator)
      await visitor.page.reload()
      await visitor.page.getByLabel('Access token').waitFor()
      expect(visitor.errors).toEqual([])
    }
    expect(leaving.errors).toEqual([])
  })
}

/** A page on another port: for a browser the same site, and another origin. */
async function serveForm(): Promise<string> {
  const server = createServer(({ url = '' }, response) => {
    response.setHeader('Content-Type', 'text/html')
    response.end(`<form method="post" action="${url.slice(url.indexOf('?') + 1)}"><button>Win a prize</button></form>`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return `http://127.0.0.1:${address.port}/`
}
