import { expect, test } from 'vitest'
import { applyPath, type Body, installation, kinds, named } from '../support/kit.ts'
import { none } from './refusals.ts'

/** The errors of all wrong fields together are those of each one by itself, word for word. */

const there = await installation({ workers: 'none' })

type Part = 'app' | 'provider'
type Wrong = { part: Part; member: string; value: unknown; reported: unknown }

/** A value that each field refuses: as a number, text, object, list or key. */
const values = [5.5, 'a\0b\ud800', { x: '\0' }, [5.5, null], none, [none, 'x', none.replace('ffff', 'fffe')]]

type Reported = Partial<Record<Part, Record<string, unknown>>>

/** Adds one error, so that nothing is applied even when a field accepts its value. */
async function ask(body: Body): Promise<Reported> {
  const { status, json } = await there.admin.put(applyPath, { ...body, extra: 1 })
  const { extra, code, ...errors } = json as Record<string, unknown>
  expect({ status, extra, code }).toEqual({ status: 400, extra: ['Unknown field.'], code: 'invalid' })
  return errors
}

const wrongIn = (body: Body, { part, member, value }: Omit<Wrong, 'reported'>): Body => ({
  ...body,
  [part]: { ...body[part], [member]: value },
})

/** `app.provider` is right among the same text in all fields: it is the name of the provider. */
const isOfItself = ({ part, member, value }: Omit<Wrong, 'reported'>) =>
  !(part === 'app' && member === 'provider' && typeof value === 'string')

/** Each field of both with each value that it refuses, and the errors, which are of that field only. */
async function wrongOneByOne(body: Body): Promise<Wrong[]> {
  const models = { app: 'service_core.application', provider: body.provider_model }
  const all = (['app', 'provider'] as const).flatMap((part) => {
    const members = [...(there.engine.registry.byName(models[part])?.fields.keys() ?? [])]
    return members.flatMap((member) => values.map((value) => ({ part, member, value }))).filter(isOfItself)
  })
  const wrong: Wrong[] = []
  while (all.length > 0) {
    const batch = all.splice(0, 24)
    const answers = await Promise.all(batch.map((each) => ask(wrongIn(body, each))))
    for (const [index, each] of batch.entries()) {
      const errors = answers[index] ?? {}
      if (Object.keys(errors).length === 0) continue
      const reported = errors[each.part]?.[each.member]
      expect(errors).toEqual({ [each.part]: { [each.member]: reported } })
      wrong.push({ ...each, reported })
    }
  }
  return wrong
}

test.each(kinds)('every field of %s wrong at once', async (kind) => {
  const body = await named(kind, 'together')
  const byMember = Map.groupBy(await wrongOneByOne(body), ({ part, member }) => `${part}.${member}`)
  expect(byMember.size).toBeGreaterThan(15)
  for (const round of values.keys()) {
    const chosen = [...byMember.values()].flatMap((each) => each[round % each.length] ?? [])
    const expected: Required<Reported> = { app: {}, provider: {} }
    for (const { part, member, reported } of chosen) expected[part][member] = reported
    expect(await ask(chosen.reduce(wrongIn, body))).toEqual(expected)
  }
})
