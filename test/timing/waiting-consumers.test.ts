import { expect, test } from 'vitest'
import '../support/patient.ts'
import { applied, installation, name, recordStatements, until } from '../support/kit.ts'

const count = 1_000
const limits = { rateLimitRequestsPerSecond: 100_000 }
const waits = { everyMs: 100, consumersOfUser: count, consumersOfProcess: count }
const there = await installation({ limits, waits })
const path = '/api/v3/consumers/radius/'

test(`${count} waiting consumers are one statement at each interval, and all of them hear of a change`, async () => {
  const users = await Promise.all(
    Array.from({ length: 10 }, () => there.make.user({ permissions: ['view_radiusprovider'] })),
  )
  const answers = users.flatMap(async (user) => {
    const { json } = await user.get(path)
    const url = `${path}?wait=30&since=${encodeURIComponent(Object(json).revision)}`
    return Promise.all(Array.from({ length: count / users.length }, () => user.get(url)))
  })
  await until('all to wait', async () => {
    const { text } = await there.admin.get('/-/metrics/')
    return text.includes(`gatewright_waits{kind="consumers"} ${count}\n`)
  })
  const { sent } = await recordStatements()
  const asked = () => sent.filter((text) => text.includes('consumer_changes'))
  await until('some intervals to pass', () => asked().length >= 5)
  // Each question is one statement, and no other is sent for a request that waits.
  expect(new Set(asked()).size).toBe(1)
  expect(sent.filter((text) => text.includes('FROM bearer_tokens') && !text.includes('consumer_changes'))).toEqual([])
  await applied(there.admin.submit('radius', name))
  const all = (await Promise.all(answers)).flat()
  expect(all).toHaveLength(count)
  for (const { status, json } of all)
    expect({ status, json }).toMatchObject({ status: 200, json: { reset: false, results: [{ name }] } })
})
