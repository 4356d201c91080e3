import { beforeAll, describe, expect, test } from 'vitest'
import { needs, openBrowser, visit } from '../support/kit.ts'
import { OnCall } from './on-call.ts'
import { questions } from './questions.ts'
import { openScenario, type Scenario } from './scenario.ts'

/** Each fault of a page, planted in the HTML that the browser gets, fails the check of the question that the page answers. */

type Fault = {
  readonly question: keyof typeof questions
  /** The path of the pages that have it. */
  readonly at: RegExp
  readonly plant: (page: string, { facts }: Scenario) => string
  /** What the check misses. */
  readonly misses: RegExp
}

const faults: Readonly<Record<string, Fault>> = {
  'the first page without the cause of its banner': {
    question: 'who paused the queue?',
    at: /^\/admin\/$/,
    plant: (page, { facts }) => page.replaceAll(facts.pause.reason, ''),
    misses: /new disks for the queue/,
  },
  'a run page without its cause': {
    question: 'why did it fail?',
    at: /^\/admin\/runs\/.+/,
    plant: (page, { facts }) => page.replaceAll(facts.cause.replaceAll('"', '&quot;'), 'an error'),
    misses: /Cause: index "providers_name"/,
  },
  'a filter of the audit that finds nothing': {
    question: 'who paused the queue?',
    at: /^\/admin\/audit\//,
    plant: (page) => page.replaceAll(/<tr id="audit-.*?<\/tr>/gs, ''),
    misses: /expected undefined to match object/,
  },
  'what fails shown as applied': {
    question: 'is it still failing?',
    at: /^\/admin\/$/,
    plant: (page) => page.replaceAll(/\d+ still failing/g, 'applied'),
    misses: /still failing/,
  },
  'a blocked run without its blocker': {
    question: 'is anything stuck, and behind what?',
    at: /^\/admin\/$/,
    plant: (page) => page.replaceAll(/process \d+ \(nightly-report\)/g, 'another process'),
    misses: /nightly-report/,
  },
}

describe.runIf(needs('chromium'))('planted faults', () => {
  let scenario: Scenario
  let one: OnCall
  beforeAll(async () => {
    scenario = await openScenario('postgres')
    const origin = await scenario.service.app.listen({ host: '127.0.0.1', port: 0 })
    const { page } = await visit(await openBrowser(), origin, { javaScriptEnabled: false })
    one = new OnCall(page)
    await one.logIn(scenario.operator.token)
  })

  test.each(Object.entries(faults))('%s', async (_fault, { question, at, plant, misses }) => {
    const check = () => questions[question]({ one, scenario, withinMs: 3_000 })
    await check()
    let planted = 0
    // What is missing is waited for.
    one.page.setDefaultTimeout(3_000)
    await one.page.route(
      ({ pathname }) => at.test(pathname),
      async (route) => {
        const response = await route.fetch()
        const page = await response.text()
        const body = plant(page, scenario)
        if (body !== page) planted += 1
        await route.fulfill({ response, body })
      },
    )
    try {
      await expect(check()).rejects.toThrow(misses)
      expect(planted).toBeGreaterThan(0)
    } finally {
      await one.page.unrouteAll()
      one.page.setDefaultTimeout(30_000)
    }
  })
})
