import { beforeAll, expect, test } from 'vitest'
import { buildApp } from '../src/app.ts'
import { startBacklog } from '../src/blueprint/run/backlog.ts'
import { startWaiter } from '../src/blueprint/run/wait.ts'
import { readConfig } from '../src/config.ts'
import { atEnd } from './support/at-end.ts'
import { type Installation, installation } from './support/installation.ts'

let there: Installation
beforeAll(async () => {
  there = await installation({ workers: 'none' })
})

/** The API with this APPLY_WAIT_MS, as the server builds it. */
function appThatWaits(applyWaitMs: string) {
  const config = readConfig({ APPLY_WAIT_MS: applyWaitMs })
  const { db, engine, queue, ring, url, worker } = there
  const waiter = startWaiter(db, url, worker.log)
  const backlog = startBacklog(db)
  atEnd(async () => {
    backlog.close()
    await waiter.close()
  })
  return buildApp({
    queue,
    submitter: { db, engine, waiter, backlog, ring, log: worker.log, applyWaitMs: config.applyWaitMs },
  })
}

// While an apply waits, nothing moves on its socket, and Node closes a socket that is still for `server.timeout`: with
// 30 s and a wait of 33 s the client saw its connection closed at 30 s, without an answer.
test.each([
  ['100', 30_000],
  ['10000', 30_000],
  ['20000', 30_000],
  ['20001', 30_001],
  ['120000', 130_000],
])('a connection outlives an apply that waits %s ms: it may be still for %i ms', (wait, stillMs) => {
  expect(appThatWaits(wait).server.timeout).toBe(stillMs)
})
