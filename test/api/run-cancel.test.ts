import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { answered, installation, name, until } from '../support/kit.ts'
import { isThere, lockRunOf, put, runOf, statesOf } from '../support/operations.ts'

/** POST /api/v3/blueprints/runs/{id}/cancel/: a run that waits is not applied. */

const there = await installation()
const operator = await there.make.user({ permissions: ['view_run', 'manage_queue'] })

const pathOf = (id: string) => `/api/v3/blueprints/runs/${id}/`
const cancel = (id: string, token?: string, headers: Record<string, string> = {}, payload?: string) =>
  (token === undefined ? there.admin : there.as(token)).send({
    method: 'POST',
    url: `${pathOf(id)}cancel/`,
    headers,
    ...(payload !== undefined && { payload }),
  })
const admin = async () => (await there.db.user.findFirstOrThrow({ where: { tokens: { some: {} } } })).username
const ended = async () => {
  const { text } = await there.as('').get('/-/metrics/')
  const line = /^gatewright_runs_ended_total\{mode="apply",kind="rac",outcome="cancelled",reason="user"\} (\d+)$/m
  return Number(line.exec(text)?.[1])
}

test('the submitter cancels a run, and the client that waits learns by whom', async () => {
  const superuser = await there.make.user({ superuser: true })
  const release = there.hold()
  const sending = there.as(superuser.token).submit('radius', name)
  await there.queued(1)
  const { id } = await runOf(there, name)
  expect(await cancel(id, superuser.token)).toMatchObject({
    status: 200,
    json: { cancelled_by: superuser.username, blueprint: '', submitter_name: superuser.username },
  })
  expect(await sending).toMatchObject({ status: 409, json: { code: 'cancelled_by_user' } })
  release()
})

test('an operator cancels the run of another: its submitter gets no other answer under the key, and nothing is applied', async () => {
  const { token, username } = operator
  const release = there.hold()
  const headers = { 'idempotency-key': name }
  const send = async () => there.admin.submit('rac', name, { headers })
  const sending = send()
  await there.queued(1)
  const { id } = await runOf(there, name)
  const answer = await cancel(id, token, { 'x-request-id': `cancels-${name}` })
  const logs = [`not applied: cancelled by ${username}`]
  const run = { id, state: 'cancelled', reason: 'cancelled', applied: null, cancelled_by: username, logs }
  expect(answer).toMatchObject({ status: 200, json: run })
  const refused = {
    status: 409,
    headers: { 'content-location': pathOf(id) },
    json: { code: 'cancelled_by_user', detail: `The run was cancelled by ${username}: nothing was changed.` },
  }
  const waited = await sending
  expect(waited).toMatchObject(refused)
  expect(waited.headers).not.toHaveProperty('retry-after')
  expect(await send()).toMatchObject(refused)
  release()
  // A later one is applied, so the job of the one before has come back.
  expect(await put(there, `${name}-later`)).toMatchObject({ status: 200 })
  expect([await isThere(there, name), await isThere(there, `${name}-later`)]).toEqual([false, true])
  expect(await there.db.auditRow.findMany({ where: { requestId: `cancels-${name}` } })).toMatchObject([
    {
      ...{ action: 'cancel_run', actorName: username, realName: null, runId: id },
      changes: [{ model: 'run', key: id, action: 'update', fields: ['state'] }],
    },
  ])
  await until('the run to be counted once', async () => (await ended()) === 1)
})

test('one that nothing waits for', async () => {
  const release = there.hold()
  expect(await put(there, name, { prefer: 'respond-async' })).toMatchObject({ status: 202 })
  const { id } = await runOf(there, name)
  expect(await cancel(id)).toMatchObject({ status: 200, json: { state: 'cancelled', cancelled_by: await admin() } })
  release()
  expect(await put(there, `${name}-later`)).toMatchObject({ status: 200 })
  expect(await isThere(there, name)).toBe(false)
})

test('while impersonating, the run and the audit row name the real user', async () => {
  const release = there.hold()
  expect(await put(there, name, { prefer: 'respond-async' })).toMatchObject({ status: 202 })
  const { id } = await runOf(there, name)
  const real = await there.make.user({ superuser: true })
  const answer = await cancel(id, real.token, { 'impersonate-user': operator.username })
  expect(answer).toMatchObject({ status: 200, json: { cancelled_by: real.username } })
  expect(await there.db.auditRow.findFirst({ where: { runId: id } })).toMatchObject({
    ...{ actorName: operator.username, realName: real.username },
  })
  release()
})

describe('refused', () => {
  const heldUp = (meanwhile: (id: string) => Promise<unknown>) => statesOf(there).heldUp(name, meanwhile)

  test('for another user without the permission, and not there for those who may not see it', async () => {
    const [sees, manages] = await Promise.all([
      there.make.user({ permissions: ['view_run'] }),
      there.make.user({ permissions: ['manage_queue'] }),
    ])
    const { answer } = await heldUp(async (id) => {
      await answered(403, cancel(id, sees.token), {
        detail: "To cancel another user's run you need the permission manage_queue.",
      })
      expect(await cancel(id, manages.token)).toMatchObject({ status: 404, json: { detail: 'There is no such run.' } })
    })
    expect(answer).toMatchObject({ status: 200 })
    expect(await cancel(randomUUID())).toMatchObject({ status: 404 })
  })

  test('for a token with fewer rights than the run had', async () => {
    const { pk } = await there.db.user.findFirstOrThrow({ where: { username: await admin() } })
    const token = await there.make.token(pk, { ceiling: ['view_user'] })
    await heldUp(async (id) =>
      expect(await cancel(id, token)).toMatchObject({
        status: 403,
        json: { detail: 'To cancel a run that had more rights than this token you need the permission manage_queue.' },
      }),
    )
  })

  test('when a worker has it', async () => {
    const { answer, id } = await heldUp((id) =>
      there.db.$transaction(async (tx) => {
        await lockRunOf(tx, name)
        await answered(409, cancel(id), {
          code: 'conflict',
          detail: `A worker has this run: it can no longer be cancelled. Its outcome will stand at ${pathOf(id)}.`,
        })
      }),
    )
    expect(answer).toMatchObject({ status: 200 })
    const detail = `This run has ended: applied. What became of it stands at ${pathOf(id)}.`
    expect(await cancel(id)).toMatchObject({ status: 409, json: { code: 'conflict', detail } })
    expect(await there.db.auditRow.count({ where: { runId: id, action: 'cancel_run' } })).toBe(0)
  })

  test('when it was cancelled already, by a user or because nothing took it', async () => {
    const by = await admin()
    const { id } = await heldUp(async (each) => void (await cancel(each)))
    await answered(409, cancel(id), { detail: expect.stringContaining(`This run has ended: cancelled by ${by}.`) })
    await there.db.run.update({ where: { id }, data: { options: { createOnly: false, expectedKeys: {} } } })
    await answered(409, cancel(id), { detail: expect.stringContaining('This run has ended: cancelled. ') })
    expect(await there.admin.get(pathOf(id))).toMatchObject({ json: { cancelled_by: null } })
  })

  test.each([
    ['nothing', 'application/json', undefined],
    ['an empty text', 'application/json', ''],
    ['an empty form', 'application/x-www-form-urlencoded', ''],
    ['an empty object', 'application/json', ' {} '],
    ['null', 'application/json', 'null'],
  ])('%s behind %s is no body, here and where a former run is applied again', async (_, type, payload) => {
    const url = `/api/v3/blueprints/runs/${randomUUID()}`
    for (const act of ['cancel', 'apply'])
      expect(
        await there.admin.send({
          method: 'POST',
          url: `${url}/${act}/`,
          headers: { 'content-type': type },
          ...(payload !== undefined && { payload }),
        }),
      ).toMatchObject({ status: 404, json: { detail: 'There is no such run.' } })
  })

  test.each(['{"why": "a mistake"}', '[]', '0', '"text"'])(
    'with the body %s, also where a token is deleted',
    async (payload) => {
      const headers = { 'content-type': 'application/json' }
      const json = { non_field_errors: ['This request takes no body: leave it out.'] }
      const url = '/api/v3/core/tokens/no-such-token/'
      expect(await there.admin.send({ method: 'DELETE', url, headers, payload })).toMatchObject({ status: 400, json })
      expect(await cancel(randomUUID(), undefined, headers, payload)).toMatchObject({ status: 400, json })
    },
  )
})
