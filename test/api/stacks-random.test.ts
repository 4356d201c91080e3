import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, inject, test } from 'vitest'
import { answered, type Entry, installation, rows, sql } from '../support/kit.ts'

/** Random documents of two stacks and of none, beside a small model of what a stack promises. */

const on = await installation()
const { apply, plan, runOf } = on.admin

const models = {
  group: ['service_core.group', 'name'],
  role: ['service_rbac.role', 'name'],
  application: ['service_core.application', 'slug'],
} as const
type Kind = keyof typeof models
const kinds = Object.keys(models) as Kind[]
const names = ['one', 'two', 'three']

type ValueOf<A> = A extends fc.Arbitrary<infer T> ? T : never
const mention = fc.record({
  kind: fc.constantFrom(...kinds),
  name: fc.constantFrom(...names),
  was: fc.option(fc.constantFrom(...names), { freq: 2 }),
  state: fc.constantFrom('present', 'present', 'present', 'absent'),
  retain: fc.boolean(),
  value: fc.constantFrom('x', 'y'),
})
type Mention = ValueOf<typeof mention>
/** A document says one thing of a row: no name stands in two entries. */
const namesOf = ({ kind, name, was, state }: Mention) =>
  [name, ...(state === 'present' && was !== null && was !== name ? [was] : [])].map((each) => `${kind} ${each}`)
const apart = (mentions: Mention[]) => new Set(mentions.flatMap(namesOf)).size === mentions.flatMap(namesOf).length
const ways = ['plain', 'plain', 'takeover', 'deletes', 'deletes, takeover', 'other number', 'plan', 'plan'] as const
const document = fc.record({
  stack: fc.constantFrom<string | null>('a', 'b', 'a', 'b', null),
  mentions: fc.array(mention, { minLength: 1, maxLength: 4 }).filter(apart),
  way: fc.constantFrom(...ways),
})
const request = fc.record({ remove: fc.boolean(), kind: fc.constantFrom(...kinds), name: fc.constantFrom(...names) })
const histories = fc.array(fc.oneof({ weight: 5, arbitrary: document }, request), { minLength: 4, maxLength: 8 })

type Row = { readonly stack: string | null; readonly retain: boolean; readonly isLeft: boolean }
type Rows = ReadonlyMap<string, Row>
const outside: Row = { stack: null, retain: false, isLeft: false }

/** The promise: the rows behind a document, or null when it is refused, and how many are left over. */
function after(there: Rows, { stack, mentions, way }: ValueOf<typeof document>): { next: Rows | null; left: number } {
  const next = new Map(there)
  const named = mentions.map((each) => {
    const [name = '', was = ''] = namesOf(each)
    return { ...each, name, isTwo: there.has(name) && there.has(was), at: there.has(name) ? name : was }
  })
  const isAnothers = ({ at }: { at: string }) => ![null, stack].includes(there.get(at)?.stack ?? null)
  const gone = [...there].filter(
    ([at, row]) => stack !== null && row.stack === stack && !named.some((of) => of.at === at),
  )
  const left = gone.filter(([, { retain }]) => !retain).map(([at]) => at)
  const mayTake = stack === null || way.includes('takeover') || way === 'plan'
  const isRefused = named.some(({ isTwo }) => isTwo) || (!mayTake && named.some(isAnothers))
  if (isRefused || (way === 'other number' && left.length > 0)) return { next: null, left: left.length }
  for (const [at, row] of gone) next.set(at, row.retain ? outside : { ...row, isLeft: true })
  for (const at of [...(/plan|deletes/.test(way) ? left : []), ...named.map((of) => of.at)]) next.delete(at)
  for (const { name, at, state, retain } of named)
    if (state === 'present')
      next.set(name, stack === null ? (there.get(at) ?? outside) : { stack, retain, isLeft: false })
  return { next, left: left.length }
}

test('members, what is left over and what is deleted are as the model says; a plan is what its apply does', {
  timeout: 600_000,
}, async () => {
  const seen = new Set<string>()
  const play = async (steps: ValueOf<typeof histories>) => {
    const start = `s-${randomUUID().slice(0, 8)}-`
    const entryOf = ({ kind, name, was, state, retain, value }: Mention): Entry => {
      const [model, identifier] = models[kind]
      const attrs = { group: { attributes: { value } }, role: {}, application: { name: value } }[kind]
      const entry = { model, identifiers: { [identifier]: `${start}${name}` }, state, retain }
      const isRenamed = was !== null && was !== name
      return state === 'absent' ? entry : { ...entry, attrs, ...(isRenamed && { was: `${start}${was}` }) }
    }
    const stored = () =>
      rows<Row & { kind: Kind; name: string; key: string }>(
        on.db,
        sql`SELECT kind, substr(name, ${start.length + 1}) AS name, o.key, substr(stack, ${start.length + 1}) AS stack,
            coalesce(retain, false) AS retain, left_at IS NOT NULL AS "isLeft" FROM (
          SELECT 'group' AS kind, 'service_core.group' AS model, pk::text AS key, name FROM groups UNION ALL
          SELECT 'role', 'service_rbac.role', pk::text, name FROM roles UNION ALL
          SELECT 'application', 'service_core.application', pk::text, slug FROM applications
        ) o LEFT JOIN stack_members m USING (model, key) WHERE starts_with(name, ${start})`,
      )
    let there: Rows = new Map()
    for (const step of steps) {
      if ('kind' in step) {
        const { kind, name } = step
        const found = (await stored()).find((row) => row.kind === kind && row.name === name)
        const next = new Map(there)
        if (step.remove && next.delete(`${kind} ${name}`)) {
          const entry = entryOf({ ...step, was: null, state: 'absent', retain: false, value: 'x' })
          const path = `/api/v3/core/applications/${start}${name}/`
          await answered(
            kind === 'application' ? 204 : 200,
            kind === 'application' ? on.admin.delete(path) : apply([entry]),
          )
        } else if (found && found.stack !== null) {
          const stack = `/api/v3/blueprints/stacks/${start}${found.stack}`
          await answered(204, on.admin.delete(`${stack}/members/${models[kind][0]}/${found.key}/`))
          next.set(`${kind} ${name}`, outside)
        }
        there = next
      } else {
        const { next, left } = after(there, step)
        const entries = step.mentions.map(entryOf)
        const options = step.stack === null ? {} : { stack: `${start}${step.stack}` }
        const planned = await plan(entries, options)
        const allow = step.way.replace('deletes', `deletes=${left}`).replace('other number', `deletes=${left + 1}`)
        const how = step.way === 'plan' ? { ifMatch: planned.etag } : step.way === 'plain' ? {} : { allow }
        const answer = await apply(entries, { ...options, ...how })
        const isApplied = answer.status === 200 && Object(answer.json).applied === true
        expect([answer.text, isApplied]).toEqual([answer.text, next !== null])
        if (isApplied && step.way === 'plan')
          expect((await runOf(answer)).changes).toEqual((await runOf(planned)).changes)
        seen.add(`${step.way} ${isApplied}`)
        there = next ?? there
      }
      const now = (await stored()).map(({ kind, name, key: _, ...row }) => [`${kind} ${name}`, row] as const)
      expect(Object.fromEntries(now)).toEqual(Object.fromEntries(there))
    }
  }
  await fc.assert(fc.asyncProperty(histories, play), { numRuns: 40 * inject('rounds') })
  expect([...seen]).toEqual(
    expect.arrayContaining([...ways.map((way) => `${way} true`), 'plain false', 'other number false']),
  )
})
