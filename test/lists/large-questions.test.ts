import { expect, test } from 'vitest'
import { listQuestions, waiting } from '../../bench/large-questions.ts'
import { seed } from '../../tools/seed/seed.ts'
import { installation, secretKey } from '../support/kit.ts'
import { describe } from '../support/openapi.ts'

/** The benchmark of large installations asks all that the lists take, and a new filter by itself. */

test('each filter, order and search of each list is asked, and answered', async () => {
  const { url, admin } = await installation({ workers: 'none' })
  const silent = { begin: () => {}, progress: () => {}, end: () => {}, note: () => {} }
  await seed({ seed: 1, size: { users: 60, groups: 80, applications: 10 }, url, secretKey }, silent)
  const get = async (path: string) => {
    const { status, json, text } = await admin.get(path)
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
    return json
  }
  const questions = await listQuestions(get)
  // The lists of one kind take the same, and orders are those that the description names.
  const isOfOneKind = /\/providers\/(?!all\/)|ordering=/
  for (const { path } of questions.filter((each) => !isOfOneKind.test(each.path))) await get(path)

  const { operations } = describe((await get('/api/v3/schema/')) as Parameters<typeof describe>[0])
  const lists = operations.filter(({ parameters }) => parameters.some(({ name }) => name === 'ordering'))
  expect(lists.map(({ path }) => path)).toContain('/api/v3/core/users/')
  const asked = (path: string) => questions.flatMap((each) => (each.path.startsWith(`${path}?`) ? [each.path] : []))
  for (const { path, parameters } of lists)
    for (const { name, in: place } of parameters)
      if (place === 'query' && name !== 'page_size' && !waiting.has(name))
        expect([path, name, asked(path).some((each) => each.includes(`${name}=`))]).toEqual([path, name, true])
  expect(asked('/api/v3/core/users/').filter((path) => path.includes('ordering='))).toHaveLength(27)
})
