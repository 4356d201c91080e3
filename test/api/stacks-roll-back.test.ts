import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { held } from '../runs/stand.ts'
import { anApplication, answered, applied, installation, rows, sql, until } from '../support/kit.ts'
import { application, fresh, group, readerOf } from './stack-cases.ts'

/** Roll backs of stacks, and entries of stacks that are skipped. */

const on = await installation()
const { apply, plan } = on.admin

const { stackOf } = readerOf(on)
const groups = (...names: string[]) => on.db.group.count({ where: { name: { in: names } } })
const applicationOf = (slug: string) => on.db.application.findFirstOrThrow({ where: { slug } })

const pathOf = ({ runId }: { readonly runId: string }) => `/api/v3/blueprints/runs/${runId}/apply/`

/** Plans to go back to a run, and applies that plan. */
async function rollBack(run: { readonly runId: string }) {
  const planned = await answered(200, on.admin.post(`${pathOf(run)}?dry_run=true`))
  const done = await applied(on.admin.post(pathOf(run), undefined, { ifMatch: planned.etag }))
  return { planned, done, run: Object(await on.admin.runOf(done)) as { not_put_back: string[] } }
}

const document = (...entries: string[]) => `version: 1\nmetadata: { name: once }\nentries:\n${entries.join('\n')}\n`
const unless = (name: string) => `[!Condition [NAND, !Find [service_core.group, [name, ${name}]]]]`

test('a roll back deletes nothing that stood at its run, and puts back no field of a hotfix', async () => {
  const [stack, slug, temporary, made] = [fresh(), fresh('app'), fresh('temporary'), fresh('made')]
  await applied(apply([application(slug), group(temporary)], { stack }))
  const monday = await applied(apply([application(slug, { name: 'B' })], { stack }))
  await applied(apply([application(slug, { name: 'C' }), group(temporary), group(made)], { stack }))
  await applied(apply([anApplication(slug, { meta_description: 'hotfix' })]))
  const { planned, run } = await rollBack(monday)
  expect(planned.logs).toContain(
    `group "${temporary}" is left over: it stood at the former run, which did not write it`,
  )
  expect(run.not_put_back).toEqual([`application "${slug}": meta_description`])
  expect([await groups(temporary), await groups(made)]).toEqual([1, 0])
  expect(await applicationOf(slug)).toMatchObject({ name: 'B', metaDescription: 'hotfix' })
  expect(await stackOf(stack)).toMatchObject({ size: 2, left_over: 1 })
})

test('a field that a later run of the stack named, and the last one did not, goes back', async () => {
  const [stack, slug] = [fresh(), fresh('app')]
  const monday = await applied(apply([application(slug)], { stack }))
  await applied(apply([application(slug, { name: 'A', meta_description: 'of B' })], { stack }))
  await applied(apply([application(slug)], { stack }))
  const { run } = await rollBack(monday)
  expect(run.not_put_back).toEqual([])
  expect((await applicationOf(slug)).metaDescription).toBe('')
})

test('a roll back leaves over what a later run adopted or took over, and did not create', async () => {
  const [stack, slug, adopted, taken] = [fresh(), fresh('app'), fresh('adopted'), fresh('taken')]
  const monday = await applied(apply([application(slug)], { stack }))
  await applied(apply([group(adopted)]))
  await applied(apply([group(taken)], { stack: fresh() }))
  const all = [application(slug, { name: 'B' }), group(adopted), group(taken)]
  await applied(apply(all, { stack, allow: 'takeover' }))
  await rollBack(monday)
  expect(await groups(adopted, taken)).toBe(2)
  expect(await stackOf(stack)).toMatchObject({ size: 3, left_over: 2 })
})

test('a roll back deletes what an apply created that waited for the run to which it goes', async () => {
  const [stack, first, second] = [fresh(), fresh('first'), fresh('second')]
  await applied(apply([group(fresh())], { stack }))
  // The first apply has the lock of the stack, and waits for the name.
  const release = await held(on, async (tx) => {
    const { pk } = await tx.group.create({ data: { pk: randomUUID(), name: first } })
    await tx.group.delete({ where: { pk } })
  })
  const waiting = () =>
    rows(on.db, sql`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
  const monday = apply([group(first)], { stack })
  await until('the first apply to wait', async () => (await waiting()).length > 0)
  const tuesday = apply([group(first), group(second)], { stack })
  await until('the second apply to wait', async () => (await waiting()).length > 1)
  await release()
  const [former, { runId }] = [await applied(monday), await applied(tuesday)]
  expect(await stackOf(stack)).toMatchObject({ run: runId, run_before: former.runId })
  await rollBack(former)
  expect([await groups(first), await groups(second)]).toEqual([1, 0])
})

test('a plan that deletes is applied by its own run', async () => {
  const [stack, slug, gone] = [fresh(), fresh('app'), fresh('gone')]
  await applied(apply([application(slug), group(gone)], { stack }))
  for (const name of ['A', 'B']) {
    const planned = await plan([application(slug, { name })], { stack })
    expect(planned.logs).toContain(`group "${gone}" would be deleted`)
    if (name === 'A') continue
    await applied(on.admin.post(pathOf(planned), undefined, { ifMatch: planned.etag }))
  }
  expect(await groups(gone)).toBe(0)
})

test('an entry whose condition is false keeps its object in the stack', async () => {
  const [stack, name] = [fresh(), fresh('once')]
  const once = document(
    `  - { model: service_core.group, identifiers: { name: ${name} }, conditions: ${unless(name)} }`,
  )
  await applied(apply(once, { stack }))
  expect((await applied(apply(once, { stack }))).logs).toEqual([expect.stringContaining('skipped')])
  expect(await stackOf(stack)).toMatchObject({ size: 1, left_over: 0 })
  const planned = await plan(once, { stack })
  await applied(apply(once, { stack, ifMatch: planned.etag }))
  expect(await groups(name)).toBe(1)
})

test('so does one that is found by a reference, or by its old name', async () => {
  const [stack, name, user] = [fresh(), fresh('group'), fresh('user')]
  await applied(apply([{ model: 'service_core.user', identifiers: { username: user }, attrs: { name: 'U' } }]))
  const entry = (of: string, conditions: string) => `  - { model: ${of}, conditions: ${conditions} }`
  const device = `service_stages_totp.totpdevice, identifiers: { name: phone, user: ${user} }`
  await applied(
    apply(document(entry(device, '[true]'), entry(`service_core.group, identifiers: { name: ${name} }`, '[true]')), {
      stack,
    }),
  )
  const renamed = `service_core.group, identifiers: { name: ${name}-new }, was: ${name}`
  const skipped = document(entry(device, unless(name)), entry(renamed, unless(name)))
  const planned = await plan(skipped, { stack })
  expect(planned.logs).toEqual([expect.stringContaining('skipped'), expect.stringContaining('skipped')])
  await applied(apply(skipped, { stack, ifMatch: planned.etag }))
  expect(await stackOf(stack)).toMatchObject({ size: 2, left_over: 0 })
})

test('what a skipped entry may not look up is not held against the next entry', async () => {
  const [stack, name, user, mine] = [fresh(), fresh('group'), fresh('user'), fresh('mine')]
  await applied(
    apply([group(name), { model: 'service_core.user', identifiers: { username: user }, attrs: { name: 'U' } }]),
  )
  const caller = await on.make.user({ permissions: ['view_group', 'add_role', 'change_role', 'add_totpdevice'] })
  const skipped = `  - { model: service_stages_totp.totpdevice, identifiers: { name: phone, user: ${user} }, conditions: ${unless(name)} }`
  const sent = document(skipped, `  - { model: service_rbac.role, identifiers: { name: ${mine} } }`)
  const { logs } = await applied(caller.apply(sent, { stack }))
  expect(logs).toEqual([expect.stringContaining('skipped'), expect.stringContaining(`role "${mine}" created`)])
})

test('consents go with the application, and devices with the user, that left the files', async () => {
  const [stack, slug, name] = [fresh(), fresh('app'), fresh('user')]
  const user = { model: 'service_core.user', identifiers: { username: name }, attrs: { name: 'U' } }
  await applied(apply([application(slug), user], { stack }))
  await applied(
    apply([
      { model: 'service_stages_totp.totpdevice', identifiers: { name: 'phone', user: name }, attrs: {} },
      { model: 'service_core.userconsent', identifiers: { user: name, application: slug }, attrs: {} },
    ]),
  )
  await applied(apply([group(fresh())], { stack, allow: 'deletes=2' }))
  expect(await on.db.user.count({ where: { username: name } })).toBe(0)
})
