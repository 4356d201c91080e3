import { expect, test } from 'vitest'
import { connect } from '../../src/db/client.ts'
import { openSums, readSums } from '../../src/db/sums.ts'
import { freshDatabase, proxyTo, until } from '../support/kit.ts'

/** What processes count together. */

test('several processes add to the same series, and none waits for another', async () => {
  const { url, db } = await freshDatabase()
  const processes = Array.from({ length: 4 }, () => connect(url, { applicationName: 'gatewright-test', max: 2 }).db)
  const series = ['b', 'a', 'c']
  const sums = processes.map((each) => openSums(each))
  for (let round = 1; round <= 20; round += 1) {
    // Each in another order: their statements lock the rows in one.
    sums.forEach((each, index) => {
      for (const at of [0, 1, 2]) each.add(series[(at + index) % 3] ?? '', 0.5)
    })
    await Promise.all(sums.map((each) => each.write()))
    expect(await readSums(db)).toEqual(new Map(['a', 'b', 'c'].map((name) => [name, 2 * round])))
  }
  expect(sums[0]?.own).toEqual(new Map(['a', 'b', 'c'].map((name) => [name, 10])))
  await Promise.all([...sums.map((each) => each.stop()), ...processes.map((each) => each.$disconnect())])
})

test('what is counted is written without being asked for, and nothing is written twice', async () => {
  const { db } = await freshDatabase()
  const sums = openSums(db)
  sums.add('a')
  await until('the count to be written', async () => (await readSums(db)).get('a') === 1)
  await sums.write()
  sums.add('a')
  await sums.stop()
  expect(await readSums(db)).toEqual(new Map([['a', 2]]))
})

test('what is counted while the database is away is written when it is back', async () => {
  const { url, db } = await freshDatabase()
  const proxy = await proxyTo(url)
  const away = connect(proxy.url, { applicationName: 'gatewright-test', max: 2 })
  const sums = openSums(away.db)
  sums.add('a')
  await sums.write()
  proxy.accept(false)
  proxy.cut()
  sums.add('a')
  await sums.write()
  sums.add('a')
  await sums.write()
  expect(await readSums(db)).toEqual(new Map([['a', 1]]))
  proxy.accept(true)
  await until('the rest to be written', async () => (await readSums(db)).get('a') === 3)
  await sums.stop()
  await away.db.$disconnect()
})
