import { expect, test } from 'vitest'
import { answered, applied, type Entry, installation } from '../support/kit.ts'
import { application, fresh, group, readerOf, role, scim } from './stack-cases.ts'

/** Plans and roll backs of stacks, and rows that another stack has. */

const on = await installation()
const { apply, plan } = on.admin
const { stackOf, namesIn } = readerOf(on)

test('a row of another stack is a conflict that names it; a takeover or a reviewed plan moves it', async () => {
  const [one, two, three, name] = [fresh(), fresh(), fresh(), fresh('group')]
  await applied(apply([group(name)], { stack: one }))
  const refused = await answered(409, apply([group(name)], { stack: two }))
  expect(refused.detail).toContain(`group "${name}" belongs to stack "${one}", and the request is of stack "${two}"`)
  await applied(apply([group(name)], { stack: two, allow: 'takeover' }))
  expect([await namesIn(one), await namesIn(two)]).toEqual([[], [name]])
  const planned = await plan([group(name)], { stack: three })
  expect(planned.logs).toContain(`group "${name}" would leave stack "${two}"`)
  await applied(apply([group(name)], { stack: three, ifMatch: planned.etag }))
  expect([await namesIn(two), await namesIn(three)]).toEqual([[], [name]])
})

test('a reviewed plan does not take over from a stack that came after it', async () => {
  const [one, two, name] = [fresh(), fresh(), fresh('group')]
  await applied(apply([group(name)]))
  const planned = await plan([group(name, { attributes: { a: 1 } })], { stack: one })
  await applied(apply([group(name)], { stack: two }))
  const refused = await answered(
    412,
    apply([group(name, { attributes: { a: 1 } })], { stack: one, ifMatch: planned.etag }),
  )
  expect(refused.detail).toContain('other stacks')
})

test('a plan stands when a field changes that no file names, and not when a named one does', async () => {
  const [stack, slug, other] = [fresh(), fresh('app'), fresh('app')]
  const document = [application(slug, { name: 'A' }), application(other, { name: 'B' })]
  await applied(apply([application(slug, { name: 'A' })], { stack }))
  const planned = await plan(document, { stack })
  await answered(200, on.admin.apply([application(slug, { meta_description: 'hotfix' })]))
  await applied(apply(document, { stack, ifMatch: planned.etag }))
  const again = await plan([application(slug, { name: 'A2' }), application(other, { name: 'B' })], { stack })
  await applied(apply([application(slug, { name: 'hotfix' })]))
  const refused = await answered(
    412,
    apply([application(slug, { name: 'A2' }), application(other, { name: 'B' })], { stack, ifMatch: again.etag }),
  )
  expect(refused.detail).toContain(`application "${slug}"`)
})

test('the run before is that of the stack: its document takes back what the last one created, changed and deleted', async () => {
  const [stack, slug, gone, made, other] = [fresh(), fresh('app'), fresh('role'), fresh('group'), fresh('group')]
  const monday = await applied(apply([application(slug, { name: 'A' }), role(gone)], { stack }))
  const next = [application(slug, { name: 'B' }), group(made)]
  const planned = await plan(next, { stack })
  const tuesday = await applied(apply(next, { stack, ifMatch: planned.etag }))
  await applied(apply([group(other, { attributes: { from: 'another team' } })], { stack: fresh() }))
  await applied(apply(next, { stack }))
  expect(await stackOf(stack)).toMatchObject({ run: tuesday.runId, run_before: monday.runId })
  // The same document again, which undoes a hotfix, is no step to go back to.
  await applied(apply([application(slug, { name: 'hotfix' })]))
  const again = await applied(apply(next, { stack }))
  const { run, run_before } = await stackOf(stack)
  expect([run, run_before]).toEqual([again.runId, monday.runId])
  const path = `/api/v3/blueprints/runs/${run_before}/apply/`
  const back = await answered(200, on.admin.post(`${path}?dry_run=true`))
  expect(back.logs).toContain(`group "${made}" would be deleted`)
  await applied(on.admin.post(path, undefined, { ifMatch: back.etag }))
  expect(await namesIn(stack)).toEqual([slug, gone].sort())
  expect((await on.db.application.findFirstOrThrow({ where: { slug } })).name).toBe('A')
  expect(await on.db.group.count({ where: { name: { in: [made, other] } } })).toBe(1)
})

test('a refusal names the fields, the run and its user; a plan that stands names the run that did it', async () => {
  const [stack, slug] = [fresh(), fresh('app')]
  await applied(apply([application(slug, { name: 'A' })], { stack }))
  const to = [application(slug, { name: 'B' })]
  const planned = await plan(to, { stack })
  const hotfix = await applied(apply([application(slug, { name: 'hotfix' })]))
  const refused = await answered(412, apply(to, { stack, ifMatch: planned.etag }))
  expect(refused.detail).toContain(`application "${slug}" changed after the plan: name by run ${hotfix.runId} of `)
  const again = await plan(to, { stack })
  const done = await applied(apply(to, { stack, ifMatch: again.etag }))
  const stands = await applied(apply(to, { stack, ifMatch: again.etag }))
  expect(stands.logs.at(-1)).toContain(
    `nothing is left of the reviewed plan: it stands, applied by run ${done.runId} of `,
  )
})

test('the number is compared where something is left over, beside a plan, too; a plan of more or fewer is refused', async () => {
  const [stack, kept, ...gone] = [fresh(), fresh('kept'), fresh('gone'), fresh('gone')] as [string, string, ...string[]]
  await applied(
    apply(
      [kept, ...gone].map((each) => group(each)),
      { stack },
    ),
  )
  const { etag: ifMatch } = await plan([group(kept)], { stack })
  for (const options of [{ allow: 'deletes=1' }, { allow: 'deletes=3', ifMatch }]) {
    const refused = await on.refused(409, () => apply([group(kept)], { stack, ...options }))
    expect(refused.detail).toMatch(
      /^2 left over, and not [13]: group "gone.*Gatewright-Allow: deletes=2 deletes them\.$/,
    )
  }
  const [extra] = [fresh('extra')]
  await applied(apply([group(kept), group(extra)], { stack }))
  const more = await answered(412, apply([group(kept)], { stack, ifMatch }))
  expect(more.detail).toContain('changed after the plan')
  await applied(apply([{ ...group(extra), state: 'absent' }, group(kept)], { stack }))
  const again = await plan([group(kept)], { stack })
  await answered(200, apply([{ ...group(gone[0] ?? ''), state: 'absent' }]))
  const fewer = await answered(412, apply([group(kept)], { stack, ifMatch: again.etag }))
  expect(fewer.detail).toContain('the plan has 1 more to delete than there is now')
  const done = await applied(apply([group(kept)], { stack, allow: 'deletes=1' }))
  const { changes } = await on.admin.runOf(done)
  // What is left over belongs to no entry.
  expect(changes.map(({ action, entry }) => [action, entry])).toEqual([
    ['unchanged', undefined],
    ['delete', null],
  ])
  // The same pipeline again: there is nothing to acknowledge.
  await applied(apply([group(kept)], { stack, allow: 'deletes=1' }))
  for (const allow of ['deletes', 'deletes=', 'deletes=many', 'deletes=-1', 'takeover=1', 'deletes=1.5'])
    expect((await on.refused(400, () => apply([group(kept)], { stack, allow }))).json).toHaveProperty(
      'Gatewright-Allow',
    )
})

test('a plan is applied to its own stack only, and takes no unchanged row that another stack got after it', async () => {
  const [one, two, name] = [fresh(), fresh(), fresh('group')]
  await applied(apply([group(name)]))
  const planned = await plan([group(name)], { stack: one })
  for (const stack of [{ stack: two }, {}]) {
    const refused = await answered(412, apply([group(name)], { ...stack, ifMatch: planned.etag }))
    expect(refused.detail).toContain('the plan is of stack "')
  }
  await applied(apply([group(name)], { stack: two }))
  const refused = await answered(412, apply([group(name)], { stack: one, ifMatch: planned.etag }))
  expect(refused.detail).toContain('what other stacks lose changed after the plan')
  expect([await namesIn(two)]).toEqual([[name]])
})

test('what another stack has is deleted by an entry only when that is acknowledged', async () => {
  const [one, two, name] = [fresh(), fresh(), fresh('group')]
  await applied(apply([group(name)], { stack: one }))
  const gone: Entry = { ...group(name), state: 'absent' }
  const refused = await on.refused(409, () => apply([gone], { stack: two }))
  expect(refused.detail).toContain(`group "${name}" belongs to stack "${one}"`)
  expect((await plan([gone], { stack: two })).logs).toContain(`group "${name}" would leave stack "${one}"`)
  await applied(apply([gone], { stack: two, allow: 'takeover' }))
  expect(await namesIn(one)).toEqual([])
})

test('what another stack has follows from no document of this one until that is acknowledged, or reviewed', async () => {
  const [one, two, slug, before, after] = [fresh(), fresh(), fresh('app'), fresh('before'), fresh('after')]
  const query = 'replace_provider=true'
  await applied(apply([scim(before)]))
  await applied(apply([application(slug, { name: 'A', provider: before })], { stack: two }))
  const document = [scim(after), application(slug, { name: 'A', provider: after })]
  const early = await plan(document, { stack: two, query })
  await applied(apply([scim(before)], { stack: one }))
  const late = await answered(412, apply(document, { stack: two, query, ifMatch: early.etag }))
  expect(late.detail).toContain('what other stacks lose changed after the plan')
  const refused = await on.refused(409, () => apply(document, { stack: two, query }))
  expect(refused.detail).toContain(`provider scim "${before}" belongs to stack "${one}"`)
  const planned = await plan(document, { stack: two, query })
  expect(planned.logs).toContain(`provider scim "${before}" would leave stack "${one}"`)
  await applied(apply(document, { stack: two, query, ifMatch: planned.etag }))
  expect(await namesIn(one)).toEqual([])
})

test('an entry gives its owner to a provider of another stack only when that is acknowledged', async () => {
  const [one, two, slug, name] = [fresh(), fresh(), fresh('app'), fresh('provider')]
  await applied(apply([scim(name)], { stack: one }))
  const document = [application(slug, { name: 'A', provider: name })]
  const refused = await on.refused(409, () => apply(document, { stack: two, owner: 'team-a' }))
  expect(refused.detail).toContain(`provider scim "${name}" belongs to stack "${one}"`)
  const { logs } = await applied(apply(document, { stack: two, owner: 'team-a', allow: 'takeover' }))
  // It stays in its stack.
  expect(logs.join()).not.toContain('left stack')
  expect([await namesIn(one), await namesIn(two)]).toEqual([[name], [slug]])
})

test('what is left over and another owner has taken is deleted only when that is acknowledged, or reviewed', async () => {
  const [stack, slug, kept] = [fresh(), fresh('app'), fresh('group')]
  const options = { stack, owner: 'team-a' }
  const document = [group(kept)]
  await applied(apply([application(slug), ...document], options))
  await applied(apply([application(slug)], { owner: 'team-b', allow: 'takeover' }))
  const refused = await on.refused(409, () => apply(document, { ...options, allow: 'deletes=1' }))
  expect(refused.detail).toMatch(
    /^application .* belongs to owner "team-b" \(made .*\), and its stack has it under owner "team-a"\. Let it stay/,
  )
  const planned = await plan(document, options)
  expect(planned.logs.join()).toContain(`application "${slug}" belonged to owner "team-b"`)
  await applied(apply(document, { ...options, allow: 'deletes=1,takeover' }))
  expect(await on.db.application.count({ where: { slug } })).toBe(0)
})

test('takeovers of several rows are applied as planned, in any order of the entries', async () => {
  const [one, two, stack] = [fresh(), fresh(), fresh()]
  const names = Array.from({ length: 12 }, () => fresh('group'))
  for (const [index, each] of names.entries())
    await applied(apply([group(each)], { stack: [one, two][index % 2] ?? one, allow: 'takeover' }))
  const { etag: ifMatch } = await plan(
    names.map((each) => group(each)),
    { stack },
  )
  await applied(
    apply(
      names.map((each) => group(each)),
      { stack, ifMatch },
    ),
  )
  expect([await namesIn(one), await namesIn(two), (await namesIn(stack)).length]).toEqual([[], [], 12])
})
