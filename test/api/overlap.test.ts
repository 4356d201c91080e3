import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { applied, applyPath, everything, installation, name, named, objects } from '../support/kit.ts'

/** What the API shows of a client secret that stays valid beside the one that replaced it. */

const there = await installation()
beforeEach(async () => {
  await put(`first-${name}-of-the-client`)
})

const bodyOf = (client_secret: unknown) => named('oauth2', name, { provider: { client_secret } })
const put = async (secret: unknown, path = applyPath) => there.admin.put(path, await bodyOf(secret))
const read = async () => Object((await there.admin.get(`/api/v3/providers/oauth2/${name}/`)).json)
const { runOf } = there.admin

test('a provider shows the one before masked, with the end of its time; sent back, both are ignored', async () => {
  expect(await read()).toMatchObject({ previous_client_secret: null, previous_client_secret_expires: null })
  const answer = await put({ value: `second-${name}-of-the-client`, overlap: 'hours=24' })
  const found = await read()
  expect(found).toMatchObject({
    client_secret: { set: true },
    previous_client_secret: { set: true },
    previous_client_secret_expires: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
  })
  expect(answer.json).toMatchObject({
    applied: true,
    logs: [
      `provider oauth2 "${name}" updated: client_secret changed (the one before is valid until ${found.previous_client_secret_expires})`,
      `application "${name}" unchanged`,
    ],
  })
  const { app, provider_model } = await bodyOf('')
  const provider = { ...found, previous_client_secret: 'chosen', previous_client_secret_expires: null }
  const again = await there.admin.put(applyPath, { app, provider_model, provider })
  expect(again.json).toMatchObject({ logs: [expect.stringMatching(/unchanged$/), expect.stringMatching(/unchanged$/)] })
  expect(await read()).toEqual(found)
})

test('a plan shows it and changes nothing; applied as reviewed, it is done', async () => {
  const asked = { value: `second-${name}-of-the-client`, overlap: 'hours=24' }
  const before = await objects(there.db)
  const plan = await put(asked, `${applyPath}?dry_run=true`)
  expect(await objects(there.db)).toEqual(before)
  expect(plan.json).toMatchObject({
    applied: false,
    logs: [
      `provider oauth2 "${name}" would be updated: client_secret changed (the one before would be valid for hours=24)`,
      `application "${name}" unchanged`,
    ],
  })
  const reviewed = { ifMatch: plan.etag }
  const done = await applied(there.admin.put(applyPath, await bodyOf(asked), reviewed))
  expect((await runOf(done)).changes).toEqual((await runOf(plan)).changes)
  expect((await read()).previous_client_secret).toEqual({ set: true })
})

test('no table, log line or answer has one of the secrets; the run has the overlap', async () => {
  const marker = `marker-${randomUUID()}-of-the-client`
  const answers = [
    await put(marker),
    await put({ value: `second-${marker}`, overlap: 'hours=24' }),
    await put({ value: `third-${marker}`, overlap: 'a day' }),
    await put({ generate: true, overlap: 'hours=24' }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 400, 200])
  const runs = await Promise.all([answers[1], answers[3]].map((answer) => runOf(answer ?? expect.fail())))
  const [overlapping, generating] = runs
  expect(overlapping?.blueprint).toMatch(/client_secret:\s+value:\s+set: true\s+overlap: hours=24/)
  expect(generating?.blueprint).toMatch(/client_secret:\s+generate: true\s+overlap: hours=24/)
  const audited = await there.db.auditRow.findMany({ where: { runId: overlapping?.id ?? '' } })
  expect(audited).toMatchObject([{ changes: [{ action: 'update', fields: ['client_secret'] }] }])
  const shown = await there.admin.get(`/api/v3/providers/oauth2/${name}/`)
  for (const text of [await everything(there.db), there.log.join('\n'), JSON.stringify([answers, runs, shown])])
    expect(text).not.toContain(marker)
})
