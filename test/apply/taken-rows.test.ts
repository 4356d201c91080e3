import { expect, test } from 'vitest'
import { apply, type Progress } from '../../src/apply/apply.ts'
import { Refusal } from '../../src/apply/refusal.ts'
import type { Entry } from '../../src/document/document.ts'
import { system } from '../../src/permissions.ts'
import { compile } from '../../src/plan/compile.ts'
import { nothingAllowed, unconditional } from '../../src/plan/engine.ts'
import { name } from '../support/name.ts'
import { application, bench, flow, oauth2 } from './engine.ts'

/** Rows that an entry takes through a reference are judged and reviewed; they are no entries of their own. */

const there = await bench()

const documentOf = (entries: readonly Partial<Entry>[]) => {
  const whole = entries.map(
    (entry) => ({ model: 'service_flows.flow', state: 'present', identifiers: {}, attrs: {}, ...entry }) as Entry,
  )
  return compile({ version: 1, metadata: { name: 'test' }, entries: whole }, there.engine.registry)
}

const taking = { ...unconditional, owner: 'team-a', allow: { ...nothingAllowed, takeover: true } }

test('progress counts each entry once: skipped ones too, and no rows that are taken', async () => {
  await there.apply([oauth2(name)])
  const seen: Progress[] = []
  const plan = documentOf([
    application(name, { provider: name }),
    { ...flow(`${name}-skipped`), conditions: [false] },
    flow(name),
  ])
  await there.transaction((tx) =>
    apply(tx, there.engine, plan, system, taking, { onProgress: (progress) => seen.push(progress) }),
  )
  const total = plan.steps.length
  expect(seen).toEqual(Array.from({ length: total }, (_, index) => ({ done: index + 1, total })))
})

test('an apply of a reviewed plan refuses when a row that it takes became the object of another owner', async () => {
  await there.apply([oauth2(name)], undefined, { owner: 'team-b' })
  const plan = documentOf([application(name, { provider: name })])
  let digests: readonly string[] = []
  const planning = there.transaction(async (tx) => {
    digests = (await apply(tx, there.engine, plan, system, { ...taking, mode: 'plan' })).digests
    throw new Error('rolled back')
  })
  await expect(planning).rejects.toThrow('rolled back')
  await there.db.provider.update({ where: { name }, data: { owner: 'team-c' } })
  const applying = there.transaction((tx) =>
    apply(tx, there.engine, plan, system, { ...taking, reviewed: 'tag' }, { reviewed: digests }),
  )
  await expect(applying).rejects.toBeInstanceOf(Refusal)
  await expect(applying).rejects.toMatchObject({ reason: 'precondition_failed' })
  await there.db.provider.update({ where: { name }, data: { owner: 'team-b' } })
  await there.transaction((tx) =>
    apply(tx, there.engine, plan, system, { ...taking, reviewed: 'tag' }, { reviewed: digests }),
  )
  expect(await there.db.provider.findUnique({ where: { name } })).toMatchObject({ owner: 'team-a' })
})
