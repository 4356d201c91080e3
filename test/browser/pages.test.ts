import type { Browser, Locator, Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { written } from '../../src/dashboard/words.ts'
import { uuid7 } from '../../src/ids.ts'
import { type Answer, applyPath } from '../support/asker.ts'
import { accessibilityViolations } from '../support/axe.ts'
import { fillLogIn, openBrowser, type Visitor, visit } from '../support/browser.ts'
import {
  applied,
  example,
  githubClaims,
  type Installation,
  installation,
  type Made,
  named,
  needs,
  rows,
  sql,
  startIssuer,
  until,
} from '../support/kit.ts'
import { statesOf } from '../support/operations.ts'

/** The operators' pages, as a person sees and handles them. */

describe.runIf(needs('chromium'))("the operators' pages in Chromium", () => {
  let service: Installation
  let browser: Browser
  let origin: string
  let operator: Made
  let failedRun: string
  const shopRuns: string[] = []
  const runOf = ({ headers }: Answer) => headers['content-location']?.split('/').at(-2) ?? ''

  beforeAll(async () => {
    service = await installation({ applyWaitMs: 4_000 })
    origin = await service.app.listen({ host: '127.0.0.1', port: 0 })
    browser = await openBrowser()
    operator = await service.make.user({
      permissions: [
        'view_queue',
        'manage_queue',
        'view_run',
        'view_token',
        'view_trustedissuer',
        'view_user',
        'view_application',
        'view_audit',
        'roll_back_run',
        ...['add', 'change', 'view'].map((action) => `${action}_radiusprovider`),
        ...['add_application', 'change_application'],
      ],
    })
    const { admin, make } = service
    for (const group of ['First', 'Second'])
      shopRuns.push(runOf(await admin.put(applyPath, await named('radius', 'shop', { app: { group } }))))
    const pipeline = {
      ...{
        issuer: 'github',
        rule: 'shop-main',
        subject: 'repo:acme/shop:ref:refs/heads/main',
        repository: 'acme/shop',
      },
      ...{
        ref: 'refs/heads/main',
        commit: '9f2c1e7ab04d5c6e8f1a2b3c4d5e6f7a8b9c0d1e',
        job: '11930541234',
        actor: 'octocat',
      },
      job_url: `https://github.example/${'a-long-name-'.repeat(20)}/actions/runs/11930541234`,
    }
    const options = JSON.stringify({ pipeline })
    await rows(service.db, sql`UPDATE runs SET options = options || ${options}::jsonb WHERE id = ${shopRuns[1]}::uuid`)
    await admin.put(applyPath, await example('oauth2'))
    await admin.put(applyPath, await example('oauth2'))
    const states = statesOf(service)
    await states.refused('refused')
    await states.cancelled('cancelled')
    await make.token(operator.pk, { identifier: 'nightly-deploy', expires: new Date(Date.now() + 5 * 86_400_000) })
    await job()
    failedRun = (await states.broken('broken')).id
    await service.db.run.update({ where: { id: failedRun }, data: { cause: 'relation "x" does not exist (42P01)' } })
    for (const [seconds, host] of [
      [-3_600, 'worker-a.example'],
      [300, 'worker-b.example'],
    ] as const)
      await rows(
        service.db,
        sql`INSERT INTO workers (id, host, process_id, version, format, slots, seen_at)
          VALUES (${uuid7()}::uuid, ${host}, 7, '0.3.0', 3, 8, now() - make_interval(secs => ${seconds}))`,
      )
  })

  /** A job of GitHub Actions has an access token, by one of the rules of its issuer. */
  async function job(): Promise<void> {
    const [issuer, iss] = [await startIssuer(), 'https://token.actions.githubusercontent.com']
    const { username: user } = await service.make.user({ permissions: [] })
    const claims = { repository: 'acme/shop', ref: 'refs/heads/main' }
    const rules = [
      { name: 'main', claims, user, owners: ['platform-networking-emeas'], stacks: ['platform-networking-emeas/apps'] },
      { name: 'other branches', claims: { repository: 'acme/shop' }, user: 'no-one' },
    ]
    const attrs = { issuer: iss, audience: origin, jwks: await issuer.jwks(), rules }
    const entry = { model: 'service_rbac.trustedissuer', identifiers: { name: 'github' }, attrs }
    await applied(service.admin.apply([entry]))
    const form = new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: await issuer.sign({ ...githubClaims(), iss, aud: origin }),
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    })
    expect((await fetch(`${origin}/api/v3/auth/token/`, { method: 'POST', body: form })).status).toBe(200)
  }

  async function logIn(options: { javaScriptEnabled?: boolean } = {}): Promise<Visitor> {
    const visitor = await visit(browser, origin, options)
    await visitor.page.goto('/admin/')
    await fillLogIn(visitor.page, operator.token)
    await visitor.page.getByRole('heading', { name: 'Now' }).waitFor()
    return visitor
  }

  const addresses = () => [
    ...[
      '/admin/',
      '/admin/runs/?period=day',
      '/admin/workers/',
      '/admin/refusals/',
      '/admin/tokens/',
      '/admin/search/?q=e',
      '/admin/audit/',
      `/admin/runs/${failedRun}/`,
      '/admin/pause/',
      '/admin/runs/',
      '/admin/runs/?period=day&group=cause',
      '/admin/runs/?outcome=failed&group=cause',
      '/admin/resume/',
      '/admin/applications/',
      '/admin/applications/grafana/',
      '/admin/applications/shop/',
    ],
    ...shopRuns.flatMap((run) => ['', 'document/', 'roll-back/'].map((part) => `/admin/runs/${run}/${part}`)),
    `/admin/runs/${failedRun}/roll-back/`,
    ...['/admin/times/', '/admin/logout/', `/admin/runs/${uuid7()}/`, '/admin/?nonsense=1'],
  ]
  const sizes = [360, 3_840]
  const schemes = ['light', 'dark'] as const

  async function expectFine(page: Page, what: string): Promise<void> {
    expect([what, await accessibilityViolations(page)]).toEqual([what, []])
    const tooWide = await page.evaluate<number>(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    )
    expect([what, tooWide]).toEqual([what, 0])
    // Where there is no room for columns, rows are blocks: nothing is cut.
    const cut = await page.evaluate<string[]>(`innerWidth > 640 ? [] : [...document.querySelectorAll('.scroll')]
      .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel)`)
    expect([what, cut]).toEqual([what, []])
  }

  async function expectFineAt(page: Page, address: string, colorScheme: (typeof schemes)[number]): Promise<void> {
    await page.goto(address)
    await page.emulateMedia({ colorScheme })
    for (const width of sizes) {
      await page.setViewportSize({ width, height: 900 })
      await expectFine(page, `${address} ${colorScheme} ${width}`)
    }
  }

  /** Leaves the page as one whose script was not loaded. */
  async function withoutScript({ page }: Visitor): Promise<void> {
    await page.route('**/*.js', (route) => route.abort())
  }

  const scripts = { 'with its script': async () => {}, 'without its script': withoutScript } as const

  describe.each(Object.entries(scripts))('%s', (_how, prepare) => {
    test.each(schemes)('no page has an accessibility violation, %s, from 360 to 3840 pixels', async (scheme) => {
      const [visitor, login] = [await logIn(), await visit(browser, origin)]
      for (const each of [visitor, login]) await prepare(each)
      await expectFineAt(login.page, '/admin/login/', scheme)
      for (const address of addresses()) await expectFineAt(visitor.page, address, scheme)
      expect([...visitor.errors, ...login.errors]).toEqual([])
    })

    test('names of 25 characters fit at 1280 pixels, a wider table has a shadow, and the header is that of the board', async () => {
      const { page } = await logIn()
      await service.db.application.updateMany({
        where: { slug: 'grafana' },
        data: { owner: 'platform-networking-emeas', name: 'BULK-APPLICATION-NUMBER-3' },
      })
      await page.setViewportSize({ width: 1_280, height: 900 })
      const table = `[...document.querySelectorAll('.scroll')].map((each) => each.scrollWidth - each.clientWidth)`
      for (const address of ['/admin/', '/admin/applications/', '/admin/runs/']) {
        await page.goto(address)
        expect([address, await page.evaluate<number[]>(`${table}.filter((more) => more > 0)`)]).toEqual([address, []])
        expect(await page.evaluate(`getComputedStyle(document.querySelector('.scroll')).backgroundAttachment`)).toBe(
          'local, local, scroll, scroll',
        )
        expect(await page.evaluate(`document.querySelector('body > header').scrollWidth`)).toBe(1_280)
      }
      await page.setViewportSize({ width: 390, height: 900 })
      for (const address of ['/admin/', '/admin/queues/']) {
        await page.goto(address)
        expect(await page.evaluate(`document.querySelector('header input').getBoundingClientRect().width`)).toBe(104)
      }
    })

    test('nor has the first page, or that of a run, while one is at work and waits for a lock', async () => {
      const visitor = await logIn()
      await prepare(visitor)
      const held = await holdUp()
      try {
        for (const scheme of schemes)
          for (const address of ['/admin/', `/admin/runs/${held.run}/`])
            await expectFineAt(visitor.page, address, scheme)
        await untilShown(visitor.page, '/admin/', blockedIn)
        await untilShown(visitor.page, `/admin/runs/${held.run}/`, (page) => page.getByText('blocked', { exact: true }))
      } finally {
        await held.release()
      }
    })
  })

  const blockedIn = (page: Page) => page.getByRole('region', { name: 'Running' }).getByText('blocked')

  /** Loads the page until it shows that: between two attempts a run neither is at work nor waits for a lock. */
  async function untilShown(page: Page, address: string, part: (page: Page) => Locator): Promise<void> {
    const isShown = async () => {
      await page.goto(address)
      return (await part(page).count()) > 0
    }
    await until(`${address} to show what the run does`, isShown, { withinMs: 40_000 })
  }

  /** Another session locks a row that a run is to change. */
  async function holdUp(): Promise<{ run: string; release(): Promise<void> }> {
    const [begun, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const locking = service.db.$transaction(
      async (tx) => {
        await tx.$executeRawUnsafe('SET LOCAL idle_in_transaction_session_timeout = 0')
        await tx.application.updateMany({ where: { slug: 'shop' }, data: { metaDescription: 'held' } })
        begun.resolve()
        await release.promise
      },
      { timeout: 120_000 },
    )
    await begun.promise
    const headers = { prefer: 'respond-async' }
    const body = await named('radius', 'shop', { app: { group: uuid7() } })
    expect(await service.admin.put(applyPath, body, { headers })).toMatchObject({ status: 202 })
    const { id: run } = await service.db.run.findFirstOrThrow({ where: { slug: 'shop', state: 'queued' } })
    const { page } = await logIn()
    // It is shown when it has been at work for a second.
    await untilShown(page, '/admin/', blockedIn)
    return {
      run,
      release: async () => {
        release.resolve()
        await locking
        await service.queued(0)
      },
    }
  }

  test('everything works without a script', async () => {
    const { page, errors } = await logIn({ javaScriptEnabled: false })
    await page.getByRole('link', { name: /worker silent|workers silent/ }).waitFor()
    await page.getByRole('link', { name: 'Workers', exact: true }).click()
    await page.getByText(/silent for \d+ min/).waitFor()
    await page.getByRole('link', { name: 'Now' }).click()
    await page.getByRole('link', { name: 'Pause the queue' }).click()
    await page.getByRole('link', { name: 'Cancel' }).click()
    expect(await service.queue.isPaused()).toBe(false)
    await page.getByRole('link', { name: 'Queue board', exact: true }).click()
    await page.getByText('its script has not loaded').waitFor()
    await page.getByRole('link', { name: 'The first page' }).click()
    await page.getByRole('link', { name: 'Log out' }).click()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Access token').waitFor()
    expect(errors).toEqual([])
  })

  test('the ids of a run are copied, and a call of curl for it, which works', async () => {
    const { page, errors } = await logIn()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.goto(`/admin/runs/${failedRun}/`)
    const copied = async (name: string) => {
      await page.getByRole('button', { name, exact: true }).click()
      await page.getByRole('button', { name: 'Copied' }).first().waitFor()
      return page.evaluate<string>('navigator.clipboard.readText()')
    }
    expect(await copied('Copy id')).toBe(failedRun)
    const { requestId } = await service.db.run.findUniqueOrThrow({ where: { id: failedRun } })
    expect(await copied('Copy')).toBe(requestId)
    const curl = await copied('Copy as curl')
    expect(curl).toBe(
      `curl -sS -H "Authorization: Bearer $GATEWRIGHT_TOKEN" '${origin}/api/v3/blueprints/runs/${failedRun}/'`,
    )
    expect(errors).toEqual([])
    const without = await logIn({ javaScriptEnabled: false })
    await without.page.goto(`/admin/runs/${failedRun}/`)
    expect(await without.page.getByRole('button').count()).toBe(0)
  })

  test('the first page says what failed, whose it is, why, and what is silent or expires', async () => {
    const { page } = await logIn()
    for (const item of ['1 worker silent', '2 runs not applied and not repaired'])
      await page.getByRole('link', { name: item, exact: true }).first().waitFor()
    const cause = page.getByRole('row').filter({ hasText: 'relation "x" does not exist (42P01)' })
    await cause.getByText('1 still failing').waitFor()
    await page.getByRole('row', { name: 'nightly-deploy' }).getByText(operator.username).waitFor()
    await page
      .getByRole('listitem')
      .getByText(/worker-b\.example, \d+: not heard for/)
      .waitFor()
    const outcomes = page.getByRole('region', { name: 'Submissions of the last hour' })
    for (const [outcome, runs] of Object.entries({ unchanged: 1, refused: 1, failed: 1, cancelled: 1 }))
      expect(await outcomes.getByRole('row', { name: outcome }).getByRole('cell').textContent()).toBe(String(runs))
    await cause.getByRole('link', { name: /^[\d:]+$/ }).click()
    await page.getByRole('heading', { name: 'broken' }).waitFor()
  })

  /** Counts the questions of the page, whose clock the test moves. @param wait what it gets when it waits for a change */
  async function watched(
    wait = "Promise.reject(new Error('away'))",
  ): Promise<{ page: Page; asked: () => Promise<number>; pass: (ms: number) => Promise<void> }> {
    const { page } = await logIn()
    await page.clock.install({ time: new Date('2026-11-23T00:00:00Z') })
    // The page asks by itself without an answer to its wait for a change: test/browser/live.test.ts has one with it.
    await page.addInitScript(`globalThis.counts = { asked: 0, done: 0 }
      const ask = fetch
      globalThis.fetch = (...sent) => {
        if (String(sent[0]).startsWith('/admin/changes/')) return ${wait}
        counts.asked += 1
        return ask(...sent)
      }
      document.addEventListener('gatewright:asked', () => (counts.done += 1))`)
    await page.goto('/admin/')
    await page.getByText('Updates by itself.').waitFor()
    const counts = () => page.evaluate<{ asked: number; done: number }>('counts')
    const pass = async (ms: number) => {
      await page.clock.runFor(ms)
      const isDone = async () => {
        const { asked, done } = await counts()
        return asked === done
      }
      await until('the page to have its answer', isDone)
    }
    const asked = async () => (await counts()).asked
    // Only the test moves it from here on.
    await page.clock.pauseAt(new Date('2026-11-23T01:00:00Z'))
    await pass(0)
    return { page, asked, pass }
  }

  test('shows a new run by itself, and keeps what is focused and scrolled', async () => {
    const { page, pass } = await watched()
    await page.setViewportSize({ width: 1_280, height: 500 })
    const link = page.getByRole('link', { name: 'All runs' })
    await link.focus()
    await page.evaluate('scrollTo(0, 100); globalThis.isSame = true')
    await service.admin.put(applyPath, await named('radius', 'appears'))
    await pass(3_000)
    await page.getByRole('link', { name: 'apply radius appears' }).waitFor()
    const refresh = service.log
      .map((line) => JSON.parse(line))
      .findLast(({ msg, route }) => msg === 'answered' && route === '/admin/')
    expect(refresh.level).toBe(20)
    expect(await page.evaluate('[isSame, scrollY]')).toEqual([true, 100])
    expect(await link.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true)
  })

  test('asks every three seconds, and not while it is hidden or stopped', async () => {
    const { page, asked, pass } = await watched()
    const hide = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`)
    const counted = async (act: () => Promise<unknown>) => {
      const before = await asked()
      await act()
      return (await asked()) - before
    }
    expect(await counted(() => pass(3_100))).toBe(1)
    await hide(true)
    expect(await counted(() => pass(60_000))).toBe(0)
    expect(
      await counted(async () => {
        await hide(false)
        await pass(1_000)
      }),
    ).toBe(1)
    await page.getByRole('button', { name: 'Stop updating' }).click()
    expect(await counted(() => pass(60_000))).toBe(0)
    expect(
      await counted(async () => {
        await page.getByRole('button', { name: 'Update again' }).click()
        await pass(1_000)
      }),
    ).toBe(1)
  })

  test('asks once a second at most, when something changes again and again', async () => {
    const { asked, pass } = await watched('Promise.resolve(Response.json({ revision: crypto.randomUUID() }))')
    const before = await asked()
    for (let second = 0; second < 5; second += 1) await pass(1_000)
    const times = (await asked()) - before
    expect(times).toBeGreaterThan(0)
    expect(times).toBeLessThanOrEqual(5)
  })

  test('shows times in the zone that was chosen, also of what appears by itself', async () => {
    const { page, pass } = await watched()
    await page.getByRole('link', { name: 'Times in UTC' }).click()
    await page.getByRole('button', { name: /, as this browser has it$/ }).waitFor()
    await page.getByLabel('Zone').selectOption('Asia/Tokyo')
    await page.getByRole('button', { name: 'Show times in this zone' }).click()
    await page.getByRole('link', { name: 'Times in Asia/Tokyo' }).waitFor()
    const name = 'in-tokyo'
    await service.admin.put(applyPath, await named('radius', name))
    await pass(3_100)
    const { createdAt } = await service.db.run.findFirstOrThrow({ where: { slug: name } })
    const text = written(createdAt, 'Asia/Tokyo')
    const row = page.getByRole('row').filter({ hasText: name })
    expect(await row.getByTitle(text).textContent()).toBe(text.slice(11, 19))
  })

  test('says when it is not up to date, and goes to the login when the session has ended', async () => {
    const { page, pass } = await watched()
    await page.route('**/admin/', (route) =>
      route.request().resourceType() === 'fetch' ? route.abort() : route.continue(),
    )
    await pass(3_100)
    await page.getByText(/Not up to date since [\d:]+ UTC/).waitFor()
    await page.unroute('**/admin/')
    await pass(3_100)
    await page.getByText('Updates by itself.').waitFor()
    await page.context().clearCookies()
    await page.clock.runFor(3_100)
    await page.waitForURL('**/admin/login/**')
    await page.getByLabel('Access token').waitFor()
    expect(new URL(page.url()).pathname).toBe('/admin/login/')
  })
})
