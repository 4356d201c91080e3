import { expect, test } from 'vitest'
import { applyPath } from '../support/asker.ts'
import { installation, kinds, example } from '../support/installation.ts'
test.each(['redis', 'postgres'] as const)('%s', async (queue) => {
  const there = await installation({ queue })
  for (const kind of kinds) {
    const body = await example(kind)
    const a = await there.admin.put(applyPath, body)
    const b = await there.admin.put(applyPath, body)
    console.log(kind, a.status, a.text, b.text)
  }
  expect(1).toBe(1)
})
