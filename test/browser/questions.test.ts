import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { openBrowser, visit } from '../support/browser.ts'
import { needs, type QueueKind, until } from '../support/kit.ts'
import { OnCall, type Row } from './on-call.ts'
import { openScenario, type Scenario } from './scenario.ts'

/** Twelve questions of an operator on call, each of which the pages answer as a whole, from the first page on, within three navigations. */

const ways = {
  'with its script': { javaScriptEnabled: true, width: 1_280 },
  'without a script': { javaScriptEnabled: false, width: 1_280 },
  'at 360 pixels': { javaScriptEnabled: true, width: 360 },
} as const

/** @param text of a cell: the clock of today, or a day with its time, in the first line */
function isSince(text: string, ms: number): boolean {
  const [first = ''] = text.split('\n')
  return first.length < 16 || Date.parse(`${first.replace(' ', 'T')}Z`) >= ms
}

function claims(queue: QueueKind): void {
  let scenario: Scenario
  let origin: string
  let browser: Browser
  beforeAll(async () => {
    scenario = await openScenario(queue)
    origin = await scenario.service.app.listen({ host: '127.0.0.1', port: 0 })
    browser = await openBrowser()
  })

  describe.each(Object.entries(ways))('%s', (_way, { javaScriptEnabled, width }) => {
    let one: OnCall
    beforeAll(async () => {
      const { page } = await visit(browser, origin, { javaScriptEnabled })
      await page.setViewportSize({ width, height: 800 })
      one = new OnCall(page)
      await one.logIn(scenario.operator.token)
    })

    const column = (rows: readonly Row[], head: string) => rows.map((row) => row[head])
    const narrow = async (outcome: string) => {
      await one.page.getByLabel('Outcome').selectOption(outcome)
      await one.show()
      return one.table('Runs')
    }
    const runsOf = async (outcome: string) => {
      await one.follow('Runs')
      return narrow(outcome)
    }

    test('what failed in the last hour?', async () => {
      const { failures, outcomes, raced, refused } = scenario.facts
      await one.ask(async () => {
        const counted = await one.table('Submissions of the last hour')
        for (const [outcome, runs] of Object.entries(outcomes))
          expect(counted).toContainEqual({ Outcome: outcome, Runs: String(runs) })
        await one.follow('Runs')
        const late = (await one.table('Runs')).filter(({ Outcome }) => Outcome === 'refused')
        expect(late.map(({ Run: run, Who: who }) => ({ run, who }))).toEqual([
          { run: `apply radius ${raced.slug}`, who: raced.who },
        ])
        expect(column(await narrow('failed'), 'Run')).toEqual(failures.map(({ slug }) => `apply radius ${slug}`))
        await one.follow('Refusals')
        const found = await one.table('Refusals, the newest first')
        expect(found.map(({ Status, Reason, Who }) => ({ status: Number(Status), code: Reason, who: Who }))).toEqual(
          refused.toReversed(),
        )
      })
    })

    test('whose is it?', async () => {
      const found = await one.ask(() => runsOf('failed'))
      expect(found.map(({ Who: who, Owner: owner }) => ({ who, owner }))).toEqual(
        scenario.facts.failures.map(({ who, owner }) => ({ who, owner })),
      )
    })

    test('why did it fail?', async () => {
      const { failures, cause } = scenario.facts
      await one.ask(async () => {
        expect(column(await one.table('Failures by cause'), 'Cause')).toContainEqual(expect.stringContaining(cause))
        expect(column(await runsOf('failed'), 'Why')).toEqual(failures.map(() => expect.stringContaining(cause)))
        await one.follow(`apply radius ${failures[0]?.slug}`)
        await one.page.getByText(`Cause: ${cause}`).waitFor()
      })
    })

    test('is it still failing?', async () => {
      const { failures, cause } = scenario.facts
      const open = failures.filter(({ isRepaired }) => !isRepaired)
      const repaired = failures.find(({ isRepaired }) => isRepaired)
      await one.ask(async () => {
        const group = (await one.table('Failures by cause')).find(({ Cause }) => Cause?.includes(cause))
        expect(group).toMatchObject({ State: `${open.length} still failing`, Runs: String(failures.length) })
        expect(column(await runsOf('failed'), 'Outcome')).toEqual(
          failures.map(({ isRepaired }) => (isRepaired ? 'failed repaired' : 'failed')),
        )
        await one.follow(`apply radius ${repaired?.slug}`)
        await one.page.getByText('Repaired by a later run').waitFor()
      })
    })

    const doneSinceYesterday = async () => {
      const yesterday = Date.now() - 86_400_000
      const all = await one.table('What was done')
      return all.filter(({ At = '' }) => isSince(At, yesterday))
    }

    test('what changed in an application since yesterday?', async () => {
      const { changed } = scenario.facts
      await one.ask(async () => {
        await one.follow('Applications')
        await one.page.getByLabel('Words of name, slug or group').fill(changed.slug)
        await one.show()
        await one.follow(/./, one.page.getByRole('row').filter({ hasText: changed.slug }))
        const found = await doneSinceYesterday()
        expect(found.map(({ What: what, Who, 'Fields, from -> to': fields }) => [what, Who, fields])).toEqual(
          changed.changes.map(({ what, who, fields }) => [
            expect.stringContaining(what),
            who,
            expect.stringContaining(fields.join('\n')),
          ]),
        )
      })
    })

    test('what changed in an application since yesterday, of one that is gone?', async () => {
      const { deleted } = scenario.facts
      await one.ask(async () => {
        await one.follow('Applications')
        await one.page.getByLabel('Words of name, slug or group').fill(deleted.slug)
        await one.show()
        await one.follow(`What was done to one with the slug ${deleted.slug}`)
        expect(await doneSinceYesterday()).toMatchObject([
          { What: expect.stringMatching(/^deleted\n/), Who: deleted.who },
        ])
      })
    })

    test('who paused the queue?', async () => {
      const { who, reason } = scenario.facts.pause
      await scenario.pause()
      await one.ask(async () => {
        try {
          const paused = await one.page.getByRole('list', { name: 'Parts' }).innerText()
          expect(paused).toMatch(`The queue is paused, by ${who} since `)
          expect(paused).toMatch(reason)
        } finally {
          await scenario.resume()
        }
        // Afterwards, too.
        await one.follow('Audit')
        await one.page.getByLabel('Action').selectOption('pause queue')
        await one.show()
        const [last] = await one.table('The audit, the newest first')
        expect(last).toMatchObject({ Who: who, Action: 'pause queue', What: expect.stringContaining(reason) })
      })
    })

    test('is the last deployment of a team applied?', async () => {
      const { admin } = scenario.service
      for (const team of ['team-shop', 'team-mail']) {
        const { json } = await admin.get(`/api/v3/blueprints/runs/?owner=${team}&mode=apply&page_size=1`)
        const [last] = (json as { results: { state: string; applied: boolean | null }[] }).results
        const word = last?.applied === true ? /applied|unchanged/ : /cancelled|failed|refused/
        const found = await one.ask(() => one.table('Teams'))
        expect(found.find(({ Owner }) => Owner === team)?.['Last deployment']).toMatch(word)
      }
    })

    test('what will be deleted, and when?', async () => {
      await one.ask(async () => {
        await one.follow('What is deleted, and when')
        const found = await one.table('What is deleted')
        expect(found.map(({ What, 'Kept for': kept }) => [What, kept])).toEqual(
          expect.arrayContaining([
            ['Finished runs, with their changes', '90 days (RUN_DAYS)'],
            ['Audit rows', '400 days (AUDIT_DAYS)'],
          ]),
        )
        const oldest = await scenario.service.db.run.findFirstOrThrow({ orderBy: { createdAt: 'asc' } })
        const goes = new Date(oldest.createdAt.getTime() + 90 * 86_400_000).toISOString()
        expect(found[0]?.['The oldest goes']).toBe(`${goes.slice(0, 19).replace('T', ' ')} UTC`)
      })
    })

    test('is anything stuck, and behind what?', async () => {
      const held = await scenario.holdUp()
      try {
        await until(
          () =>
            one.ask(async () => {
              // It is shown when it is at work for a second, and asked again by hand: there may be no script.
              if ((await one.region('Running').count()) === 0) return false
              const [found] = await one.table('Running')
              expect(found).toMatchObject({ Run: held.title })
              expect(found?.['Waits for a lock of']).toContain(
                `process ${held.pid} (${held.program}), idle in transaction`,
              )
              return true
            }),
          { what: 'the run to be shown with what it waits for', withinMs: 15_000 },
        )
      } finally {
        await held.release()
      }
    })

    test('which worker version runs, and which is silent?', async () => {
      const { working, silent, silentHost } = scenario.facts.workers
      const found = await one.ask(async () => {
        await one.follow('Workers')
        return one.table('Workers')
      })
      const isSilent = ({ State = '' }: Row) => State.startsWith('silent for')
      expect(found.filter((row) => !isSilent(row)).map(({ Version, State }) => [Version, State])).toEqual([
        [working, 'heard'],
      ])
      expect(found.filter(isSilent).map(({ Version, Host }) => [Version, Host])).toEqual([[silent, silentHost]])
    })

    test('which pipelines will stop this week?', async () => {
      const { tokens, certificates } = scenario.facts
      await one.ask(async () => {
        for (const [what, expected] of Object.entries({ 'Access tokens': tokens, Certificates: certificates })) {
          const found = (await one.table(what)).map(({ In = '', ...row }) => ({
            name: row[what],
            days: Number.parseInt(In, 10),
          }))
          const thisWeek = (all: readonly { readonly days: number }[]) => all.filter(({ days }) => days <= 7)
          expect(thisWeek(found)).toEqual(thisWeek(expected))
          expect(thisWeek(found)).toHaveLength(1)
        }
      })
    })

    test('was it changed outside?', async () => {
      const { outside, erased } = scenario.facts
      for (const slug of outside)
        await one.ask(async () => {
          await one.follow('Applications')
          await one.page.getByLabel('Words of name, slug or group').fill(slug)
          await one.show()
          await one.follow(/./, one.page.getByRole('row').filter({ hasText: slug }))
          await one.page.getByText('changed outside').first().waitFor()
        })
      await one.ask(async () => {
        await one.follow('Applications')
        await one.page.getByLabel('Words of name, slug or group').fill(erased)
        await one.show()
        await one.follow(`What was done to one with the slug ${erased}`)
        await one.page.getByText('There is no application of this slug now').waitFor()
        await one.page.getByText('changed outside').first().waitFor()
      })
    })
  })
}

describe.runIf(needs('chromium'))('twelve questions', () => {
  describe("with PostgreSQL's queue", () => claims('postgres'))
  describe.runIf(needs('redis-server'))('with Redis', () => claims('redis'))
})
