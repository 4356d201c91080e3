import type { Browser } from 'playwright-core'
import { beforeAll, describe, test } from 'vitest'
import { needs, openBrowser, type QueueKind, visit } from '../support/kit.ts'
import { OnCall } from './on-call.ts'
import { questions } from './questions.ts'
import { openScenario, type Scenario } from './scenario.ts'

const ways = {
  'with its script': { javaScriptEnabled: true, width: 1_280 },
  'without a script': { javaScriptEnabled: false, width: 1_280 },
  'at 360 pixels': { javaScriptEnabled: true, width: 360 },
} as const

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

    test.each(Object.entries(questions))('%s', (_question, check) => check({ one, scenario }))
  })
}

describe.runIf(needs('chromium'))('twelve questions', () => {
  describe("with PostgreSQL's queue", () => claims('postgres'))
  describe.runIf(needs('redis-server'))('with Redis', () => claims('redis'))
})
