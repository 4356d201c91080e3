import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { headerOf } from '../../src/http/headers.ts'
import { longestMessage } from '../../src/runs/message.ts'
import { installation } from '../support/kit.ts'

/** `Gatewright-Message`: why it is done, which is kept with the run. */

const there = await installation()

const header = 'Gatewright-Message'
const put = (headers: Record<string, string>, slug = `m-${randomUUID().slice(0, 8)}`) =>
  there.admin.submit('radius', slug, { headers })
const { runOf } = there.admin

describe('a message', () => {
  test('is shown with its run, whichever route took it', async () => {
    const first = await put({ [header]: headerOf('  zurück, „CHG-1042“ ') })
    expect(await runOf(first)).toMatchObject({ message: 'zurück, „CHG-1042“', applied: true })
    const url = `${first.run}apply/`
    const again = await there.admin.post(url, undefined, { headers: { [header]: 'once more' } })
    expect(await runOf(again)).toMatchObject({ message: 'once more' })
    // That of the former run is not repeated.
    expect(await runOf(await there.admin.post(url))).toMatchObject({ message: null })
    const group = { model: 'service_core.group', identifiers: { name: `m-${randomUUID()}` } }
    const blueprint = await there.admin.apply([group], { headers: { [header]: 'for the team' } })
    expect(await runOf(blueprint)).toMatchObject({ message: 'for the team' })
    expect(await runOf(await put({ [header]: ' ' }))).toMatchObject({ message: null })
    expect(await runOf(await put({ [header]: 'x'.repeat(longestMessage) }))).toMatchObject({ applied: true })
  })

  test('that is too long, or no line, is a 400 at its header', async () => {
    for (const message of ['x'.repeat(longestMessage + 1), headerOf('one\u0085two'), 'one\ttwo']) {
      const { status, json } = await put({ [header]: message })
      expect([status, json]).toMatchObject([400, { [header]: [expect.stringMatching(/^(Must be|Has a)/)] }])
    }
  })

  test('is part of what is sent under an Idempotency-Key', async () => {
    const sent = { 'idempotency-key': randomUUID(), [header]: 'one' }
    const slug = `m-${randomUUID().slice(0, 8)}`
    const first = await put(sent, slug)
    expect((await put(sent, slug)).run).toBe(first.run)
    expect((await put({ ...sent, [header]: 'two' }, slug)).status).toBe(422)
  })

  test('of a single write is an unknown header: it would be lost', async () => {
    const slug = `m-${randomUUID().slice(0, 8)}`
    await put({}, slug)
    const url = `/api/v3/core/applications/${slug}/`
    const answer = await there.admin.delete(url, { headers: { [header]: 'gone' } })
    expect(answer).toMatchObject({ status: 400, json: { 'gatewright-message': ['Unknown header.'] } })
    expect(await there.db.application.count({ where: { slug } })).toBe(1)
  })
})
