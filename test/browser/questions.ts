import { expect } from 'vitest'
import { until } from '../support/kit.ts'
import type { OnCall, Row } from './on-call.ts'
import type { Scenario } from './scenario.ts'

/** Twelve questions of an operator on call, each of which the pages answer as a whole, from the first page on, within three navigations. */

/** @property withinMs how long a blocked run may take to be shown */
export type Asked = { readonly one: OnCall; readonly scenario: Scenario; readonly withinMs?: number }
type Question = (asked: Asked) => Promise<void>

/** @param text of a cell: the clock of today, or a day with its time, in the first line */
function isSince(text: string, ms: number): boolean {
  const [first = ''] = text.split('\n')
  return first.length < 16 || Date.parse(`${first.replace(' ', 'T')}Z`) >= ms
}

const column = (rows: readonly Row[], head: string) => rows.map((row) => row[head])
const narrow = async (one: OnCall, outcome: string) => {
  await one.page.getByLabel('Outcome').selectOption(outcome)
  await one.show()
  return one.table('Runs')
}
const runsOf = async (one: OnCall, outcome: string) => {
  await one.follow('Runs')
  return narrow(one, outcome)
}

const doneSinceYesterday = async (one: OnCall) => {
  const yesterday = Date.now() - 86_400_000
  const all = await one.table('What was done')
  return all.filter(({ At = '' }) => isSince(At, yesterday))
}

/** The checks of the answers. They fail when a page does not answer (planted-faults.test.ts). */
export const questions = {
  'what failed in the last hour?': async ({ one, scenario }) => {
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
      expect(column(await narrow(one, 'failed'), 'Run')).toEqual(failures.map(({ slug }) => `apply radius ${slug}`))
      await one.follow('Refusals')
      const found = await one.table('Refusals, the newest first')
      expect(found.map(({ Status, Reason, Who }) => ({ status: Number(Status), code: Reason, who: Who }))).toEqual(
        refused.toReversed(),
      )
    })
  },

  'whose is it?': async ({ one, scenario }) => {
    const found = await one.ask(() => runsOf(one, 'failed'))
    expect(found.map(({ Who: who, Owner: owner }) => ({ who, owner }))).toEqual(
      scenario.facts.failures.map(({ who, owner }) => ({ who, owner })),
    )
  },

  'why did it fail?': async ({ one, scenario }) => {
    const { failures, cause } = scenario.facts
    await one.ask(async () => {
      expect(column(await one.table('Failures by cause'), 'Cause')).toContainEqual(expect.stringContaining(cause))
      expect(column(await runsOf(one, 'failed'), 'Why')).toEqual(failures.map(() => expect.stringContaining(cause)))
      await one.follow(`apply radius ${failures[0]?.slug}`)
      await one.page.getByText(`Cause: ${cause}`).waitFor()
    })
  },

  'is it still failing?': async ({ one, scenario }) => {
    const { failures, cause } = scenario.facts
    const open = failures.filter(({ isRepaired }) => !isRepaired)
    const repaired = failures.find(({ isRepaired }) => isRepaired)
    await one.ask(async () => {
      const group = (await one.table('Failures by cause')).find(({ Cause }) => Cause?.includes(cause))
      expect(group).toMatchObject({ State: `${open.length} still failing`, Runs: String(failures.length) })
      expect(column(await runsOf(one, 'failed'), 'Outcome')).toEqual(
        failures.map(({ isRepaired }) => (isRepaired ? 'failed repaired' : 'failed')),
      )
      await one.follow(`apply radius ${repaired?.slug}`)
      await one.page.getByText('Repaired by a later run').waitFor()
    })
  },

  'what changed in an application since yesterday?': async ({ one, scenario }) => {
    const { changed } = scenario.facts
    await one.ask(async () => {
      await one.follow('Applications')
      await one.page.getByLabel('Words of name, slug or group').fill(changed.slug)
      await one.show()
      await one.follow(/./, one.page.getByRole('row').filter({ hasText: changed.slug }))
      const found = await doneSinceYesterday(one)
      expect(found.map(({ What: what, Who, 'Fields, from -> to': fields }) => [what, Who, fields])).toEqual(
        changed.changes.map(({ what, who, fields }) => [
          expect.stringContaining(what),
          who,
          expect.stringContaining(fields.join('\n')),
        ]),
      )
    })
  },

  'what changed in an application since yesterday, of one that is gone?': async ({ one, scenario }) => {
    const { deleted } = scenario.facts
    await one.ask(async () => {
      await one.follow('Applications')
      await one.page.getByLabel('Words of name, slug or group').fill(deleted.slug)
      await one.show()
      await one.follow(`What was done to one with the slug ${deleted.slug}`)
      expect(await doneSinceYesterday(one)).toMatchObject([
        { What: expect.stringMatching(/^deleted\n/), Who: deleted.who },
      ])
    })
  },

  'who paused the queue?': async ({ one, scenario }) => {
    const { who, reason } = scenario.facts.pause
    await scenario.pause()
    await one.ask(async () => {
      try {
        const paused = await one.page.getByRole('list', { name: 'Parts' }).innerText()
        expect(paused).toMatch(`Queue paused by ${who} `)
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
  },

  'is the last deployment of a team applied?': async ({ one, scenario }) => {
    const { admin } = scenario.service
    for (const team of ['team-shop', 'team-mail']) {
      const { json } = await admin.get(`/api/v3/blueprints/runs/?owner=${team}&mode=apply&page_size=1`)
      const [last] = (json as { results: { state: string; applied: boolean | null }[] }).results
      const word = last?.applied === true ? /applied|unchanged/ : /cancelled|failed|refused/
      const found = await one.ask(() => one.table('Teams'))
      expect(found.find(({ Owner }) => Owner === team)?.['Last deployment']).toMatch(word)
    }
  },

  'what will be deleted, and when?': async ({ one, scenario }) => {
    await one.ask(async () => {
      await one.follow('Retention')
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
  },

  'is anything stuck, and behind what?': async ({ one, scenario, withinMs = 15_000 }) => {
    const held = await scenario.holdUp()
    try {
      await until(
        'the run to be shown with what it waits for',
        () =>
          one.ask(async () => {
            // It is shown when it is at work for a second, and asked again by hand: there may be no script.
            if ((await one.region('Running').count()) === 0) return false
            const [found] = await one.table('Running')
            const worker = expect.stringMatching(/^(process \d+|none)/)
            expect(found).toMatchObject({ Run: held.title, Worker: worker })
            expect(found?.['Waits for a lock of']).toContain(
              `process ${held.pid} (${held.program}), idle in transaction`,
            )
            return true
          }),
        { withinMs },
      )
    } finally {
      await held.release()
    }
  },

  'which worker version runs, and which is silent?': async ({ one, scenario }) => {
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
  },

  'which pipelines will stop this week?': async ({ one, scenario }) => {
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
  },

  'was it changed outside?': async ({ one, scenario }) => {
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
  },
} as const satisfies Readonly<Record<string, Question>>
