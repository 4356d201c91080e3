import { expect, test } from 'vitest'
import { write } from '../../src/apply/write.ts'
import { uuid7 } from '../../src/ids.ts'
import { system } from '../../src/permissions.ts'
import { cpuMs } from '../support/cpu-time.ts'
import { bench } from './engine.ts'

/** Bodies with many errors: all are reported, and other requests do not wait. */

const there = await bench()

const create = (fields: Record<string, unknown>) =>
  write(
    there.db,
    there.engine,
    system,
    { model: 'service_core.group', mode: { create: true }, fields: { name: uuid7(), ...fields }, requestId: 'r' },
    async () => 'written',
  )

test('a duplicate key is reported together with invalid keys and keys without a row', async () => {
  await expect(create({ users: [1, 1, 'a', 999_999] })).rejects.toMatchObject({
    code: 'invalid',
    fields: {
      users: {
        non_field_errors: ['Must not hold a key twice.'],
        2: ['No user is called "a".'],
        3: ['There is no user with the key 999999.'],
      },
    },
  })
  await expect(create({ users: ['a', 'a', 1] })).rejects.toMatchObject({
    fields: { users: { 0: ['No user is called "a".'], 1: ['No user is called "a".'] } },
  })
  await expect(create({ users: 'a' })).rejects.toMatchObject({ fields: { users: ['Must be a list.'] } })
})

test('ten thousand keys without a row do not block other requests', async () => {
  const own = async (count: number) => {
    const users = Array.from({ length: count }, (_, index) => 1_000_000 + index)
    const from = cpuMs()
    const refused = create({ users })
    await expect(refused).rejects.toMatchObject({ code: 'invalid' })
    return cpuMs() - from
  }
  const [few, many] = [[await own(1_000)], [await own(9_990)]]
  for (let round = 0; round < 9; round += 1) {
    few.push(await own(1_000))
    many.push(await own(9_990))
  }
  // Ten times as many keys take about ten times as long; a search of the whole list per key took twenty times.
  expect(Math.min(...many), `${few} ms, ${many} ms`).toBeLessThan(25 * Math.min(...few))
})
