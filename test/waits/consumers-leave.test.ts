import { expect, test } from 'vitest'
import { adminToken, applied, installation, name, recordStatements, until } from '../support/kit.ts'

/** Consumers that are gone, and servers that stop. */

const there = await installation({ waits: { everyMs: 50 } })
const url = await there.app.listen({ port: 0, host: '127.0.0.1' })
const path = '/api/v3/consumers/oauth2/'
const headers = { authorization: `Bearer ${adminToken}` }

test('a fresh process answers more first reads at once than it has connections', async () => {
  const users = await Promise.all(
    Array.from({ length: 20 }, () => there.make.user({ permissions: ['view_oauth2provider'] })),
  )
  const answers = await Promise.all(users.map((user) => user.get(path)))
  expect(answers.map(({ status }) => status)).toEqual(users.map(() => 200))
})

const waitPath = async (seconds: number) => {
  const { json } = await there.admin.get(path)
  return `${url}${path}?wait=${seconds}&since=${encodeURIComponent(Object(json).revision)}`
}
const waiting = (count: number) =>
  until(`${count} waits`, async () => {
    const { text } = await there.admin.get('/-/metrics/')
    return text.includes(`gatewright_waits{kind="consumers"} ${count}\n`)
  })

test('a client that leaves gives its place back', async () => {
  const leave = new AbortController()
  const answer = fetch(await waitPath(30), { headers, signal: leave.signal })
  answer.catch(() => {})
  await waiting(1)
  leave.abort()
  await waiting(0)
  await expect(answer).rejects.toThrow('aborted')
})

test('no change is missed by one that begins to wait while others do', async () => {
  await applied(there.admin.submit('oauth2', name))
  const others = Array.from({ length: 3 }, async () => fetch(await waitPath(2), { headers }))
  for (let round = 0; round < 20; round += 1) {
    const address = await waitPath(30)
    const answer = fetch(address, { headers })
    await applied(there.admin.submit('oauth2', name, { app: { name: `Round ${round}` } }))
    expect(Object(await (await answer).json()).results).toMatchObject([{ application: { name: `Round ${round}` } }])
  }
  await Promise.all(others)
})

test('a server that stops answers all that wait, and asks nothing more', async () => {
  const addresses = await Promise.all(Array.from({ length: 8 }, () => waitPath(30)))
  const answers = addresses.map((address) => fetch(address, { headers }))
  await waiting(8)
  const { sent } = await recordStatements()
  await there.app.close()
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 204))
  expect(sent.length).toBeLessThan(20)
})
