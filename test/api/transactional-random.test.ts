import fc from 'fast-check'
import { expect, inject, test } from 'vitest'
import { type Body, example, kinds, named } from '../support/examples.ts'
import { answered, applyPath, everything, installation, versions } from '../support/kit.ts'

/** Values that some field does not expect. */
const odd = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      null,
      true,
      false,
      0,
      -0,
      -1,
      1.5,
      2 ** 31,
      -(2 ** 31) - 1,
      2 ** 53,
      1e300,
      5e-324,
      '',
      ' ',
      '\n',
      'null',
      '!KeyOf provider',
      '<<',
      '*',
      '%s',
      "'; --",
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '\0',
      '\ud800',
      '\udfff',
      '\ufeff',
      '\u0085',
      '😀'.repeat(64),
      'x'.repeat(2_704),
      'é'.repeat(9_000),
      '0'.repeat(60_000),
      '9999-99-99',
      '10000-01-01T00:00:00Z',
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '6f7e0000-0000-4000-8000-000000000102',
      '6f7e0000-0000-4000-8000-000000000301',
      '6F7E0000-0000-4000-8000-000000000201',
      '6f7e0000-0000-4000-8000-00000000ffff',
      'grafana',
    ),
  },
  { weight: 3, arbitrary: fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' }) },
  fc.string({ unit: 'binary', maxLength: 50 }),
)
const memberName = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'toString',
    'pk',
    'code',
    'non_field_errors',
    'provider',
    'slug',
    'settings',
    'secrets',
    'kind',
    'uuid',
    '',
  ),
  fc.string({ unit: 'binary', maxLength: 12 }),
)

type Place = { holder: Record<string, unknown> | unknown[]; name: string }
function places(value: unknown): Place[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [
    { holder: value as Place['holder'], name },
    ...places(inner),
  ])
}

type Change = { at: number; how: 'replace' | 'remove' | 'add' | 'wrap' | 'empty'; value: unknown; name: string }
const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(500),
  how: fc.constantFrom('replace', 'replace', 'replace', 'remove', 'add', 'wrap', 'empty'),
  value: odd,
  name: memberName,
})

/** The example with some fields replaced, removed, added or wrapped. */
function mutate(body: Body, changes: readonly Change[]): unknown {
  const root = { body: structuredClone(body) as unknown }
  for (const { at, how, value, name } of changes) {
    const all = places(root)
    const place = all[at % all.length]
    if (place === undefined) continue
    const holder = place.holder as Record<string, unknown>
    const before = holder[place.name]
    if (how === 'remove' && !Array.isArray(holder)) delete holder[place.name]
    else if (how === 'wrap') holder[place.name] = [before, value]
    else if (how === 'empty') holder[place.name] = Array.isArray(before) ? [] : typeof before === 'object' ? {} : ''
    else if (how === 'add' && typeof before === 'object' && before !== null)
      Object.defineProperty(before, Array.isArray(before) ? before.length : name, {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      })
    else holder[place.name] = value
  }
  return root.body
}

test('any submission is applied or refused, and applying it again changes nothing', async () => {
  const there = await installation()
  const examples = await Promise.all(kinds.map((kind) => example(kind)))
  const tally = new Map<number, number>()
  const rounds = Math.max(100, 200 * inject('rounds'))
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...examples),
      fc.array(change, { minLength: 1, maxLength: 4 }),
      async (shipped, changes) => {
        const body = JSON.stringify(mutate(shipped, changes)) ?? ''
        const answer = await there.admin.put(applyPath, body)
        tally.set(answer.status, (tally.get(answer.status) ?? 0) + 1)
        expect([200, 400]).toContain(answer.status)
        if (answer.status === 400) return
        expect(answer.json).toMatchObject({ applied: true })
        await answered(200, there.admin.get(answer.run))
        const before = await versions(there.db)
        await answered(200, there.admin.put(applyPath, body), {
          logs: [expect.stringMatching(/unchanged$/), expect.stringMatching(/unchanged$/)],
        })
        expect(await versions(there.db)).toEqual(before)
      },
    ),
    { numRuns: rounds },
  )
  // Both outcomes occurred often.
  expect(tally.get(200), JSON.stringify([...tally])).toBeGreaterThan(1)
  expect(tally.get(400)).toBeGreaterThan(5)
  expect(await there.db.run.count({ where: { state: { not: 'done' } } })).toBe(0)
  expect(there.log.filter((line) => JSON.parse(line).level >= 50)).toEqual([])
  expect(await everything(there.db)).not.toContain('example-only')
})

test('each field of each kind, with odd values', async () => {
  const there = await installation()
  const values = [
    null,
    '\0',
    'a\ud800b',
    1e300,
    2 ** 31,
    -(2 ** 63),
    'x'.repeat(9_000),
    '😀'.repeat(2_000),
    '10000-01-01',
    'not-a-uuid',
    [],
    {},
    [[]],
    [null],
    true,
    '',
  ]
  // Two values for each field; `npm run random` tries all of them. Kinds share many fields, which get others there.
  let turn = 0
  const some = () => {
    turn += 1
    return inject('rounds') > 1 ? values : values.filter((_, at) => (at + turn) % 8 === 0)
  }
  // The queue of a busy machine may be away for a moment: that applied nothing, and a client sends it again.
  const sent = async (body: object, tries = 3): Promise<Awaited<ReturnType<typeof there.admin.put>>> => {
    const answer = await there.admin.put(applyPath, body)
    return answer.status === 503 && tries > 1 ? sent(body, tries - 1) : answer
  }
  const wrong: unknown[] = []
  for (const kind of kinds) {
    const body = await named(kind, `odd-${kind}`)
    // First as it is: another application, of a well-formed odd slug, may not take its provider.
    expect(await there.admin.put(applyPath, body)).toMatchObject({ status: 200, json: { applied: true } })
    const bodies = (['app', 'provider'] as const).flatMap((part) =>
      [
        ...(there.engine.registry
          .byName(part === 'app' ? 'service_core.application' : body.provider_model)
          ?.fields.keys() ?? []),
      ].flatMap((member) =>
        some().map((value) => ({ part, member, value, body: { ...body, [part]: { ...body[part], [member]: value } } })),
      ),
    )
    while (bodies.length > 0) {
      const batch = bodies.splice(0, 24)
      const answers = await Promise.all(batch.map(({ body }) => sent(body)))
      for (const [index, { status, json, text }] of answers.entries()) {
        const { part, member, value } = batch[index] ?? {}
        // A slug that is well-formed names another application, which may not take this one's provider.
        const blamed = member === 'slug' && text.includes('belongs to application') ? 'provider' : member
        const named = status === 400 && JSON.stringify(json).includes(`"${blamed}"`)
        const applied = status === 200 && text.includes('"applied":true')
        if (!named && !applied)
          wrong.push({
            kind,
            part,
            member,
            value: JSON.stringify(value).slice(0, 40),
            status,
            text: text.slice(0, 200),
          })
      }
    }
  }
  expect(wrong).toEqual([])
})
