import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { notKept } from '../../src/numbers.ts'
import { type Answer, answered, applyPath, installation, named } from '../support/kit.ts'

/** A number is kept digit for digit, or refused at its place: an id of 19 digits is not rounded to that of another. */

const there = await installation()

const put = (url: string, payload: string, type: 'yaml' | 'json' = 'json') =>
  there.admin.send({ method: 'PUT', url, headers: { 'content-type': `application/${type}` }, payload })
const errorsOf = ({ errors }: Answer) => errors
const set = '/api/v3/blueprints/'
const group = (name: string, attributes: string) =>
  `{"version": 1, "metadata": {"name": "x"}, "entries": [\n{"model": "service_core.group", "identifiers": {"name": "${name}"},\n"attrs": {"attributes": ${attributes}}}]}`
const error = (pointer: string, place: object = {}) => ({ code: 'invalid_value', message: notKept, pointer, ...place })

describe('a number that would lose digits', () => {
  test('is refused at its pointer, in JSON and in YAML, and all of them at once', async () => {
    const text = group('n', '{"discord_id": 1056712345678901234, "in": [{"a": 1.0}, 0.1234567890123456789, 1e400]}')
    const pointers = ['discord_id', 'in/1', 'in/2'].map((end) => `/entries/0/attrs/attributes/${end}`)
    const json = await put(set, text)
    expect([json.status, errorsOf(json)]).toEqual([400, pointers.map((pointer) => error(pointer))])
    const yaml = await put(set, text, 'yaml')
    const places = pointers.map((pointer) => error(pointer, { line: 3, column: expect.any(Number) }))
    expect([yaml.status, errorsOf(yaml)]).toEqual([400, places])
    expect(await there.db.group.count({ where: { name: 'n' } })).toBe(0)
  })

  test.each([
    ['the attributes of a group', 'attributes: {id: 9007199254740993}', '/entries/0/attrs/attributes/id'],
    ['hexadecimal', 'attributes: {id: 0x20000000000001}', '/entries/0/attrs/attributes/id'],
    ['no number of JSON', 'attributes: {id: .inf}', '/entries/0/attrs/attributes/id'],
    ['a key of a mapping', 'attributes: {1056712345678901234: x}', '/entries/0/attrs/attributes/1056712345678901234'],
    ['the part of a text', 'attributes: {id: !Format ["%s", 1056712345678901234]}', '/entries/0/attrs/attributes/id/1'],
    ['behind a tag', 'attributes: {id: !!int 1056712345678901234}', '/entries/0/attrs/attributes/id'],
  ])('is refused where it is %s', async (_, attrs, pointer) => {
    const text = `version: 1\nentries:\n- model: service_core.group\n  identifiers: {name: n}\n  attrs:\n    ${attrs}\n`
    const answer = await put(set, text, 'yaml')
    expect([answer.status, errorsOf(answer)]).toEqual([400, [error(pointer, { line: 6, column: expect.any(Number) })]])
  })

  test('is refused in the context, and in the labels', async () => {
    const text = (head: string) =>
      `version: 1\n${head}\nentries:\n- {model: service_core.group, identifiers: {name: n}}\n`
    for (const [head, pointer] of [
      ['context: {id: 1056712345678901234}', '/context/id'],
      ['metadata: {labels: {commit: 1234e567}}', '/metadata/labels/commit'],
    ] as const)
      expect(errorsOf(await put(set, text(head), 'yaml'))).toMatchObject([error(pointer)])
  })

  test('is refused in a submission, in a group of its own, and in a secret object, as JSON text too', async () => {
    const body = JSON.stringify(await named('rac', `n-${randomUUID().slice(0, 8)}`))
    const inside = (settings: string) => body.replace(/"settings":\{[^}]*\}/, `"settings":${settings}`)
    const number = '{"a": {"id": 1056712345678901234}}'
    expect(errorsOf(await put(applyPath, inside(number)))).toMatchObject([error('/provider/settings/a/id')])
    expect(errorsOf(await put(applyPath, inside(JSON.stringify(number))))).toMatchObject([error('/provider/settings')])
    const answer = await there.admin.send({
      ...{ method: 'POST', url: '/api/v3/core/groups/', headers: { 'content-type': 'application/json' } },
      payload: '{"name": "n", "attributes": {"id": 1056712345678901234}, "parent": 9007199254740993}',
    })
    expect(errorsOf(answer)).toEqual(expect.arrayContaining([error('/attributes/id'), error('/parent')]))
  })
})

test('a number that is kept is stored as it is, in other spellings too, and so is a text', async () => {
  const name = `n-${randomUUID().slice(0, 8)}`
  const attributes =
    '{"a": 9007199254740991, "b": 1.10, "c": 1e3, "d": -0.0, "e": 5e-324, "f": "1056712345678901234", "g": 1e21}'
  for (const type of ['json', 'yaml'] as const) {
    await answered(200, put(set, group(name, attributes), type))
    const [row] = await there.db.$queryRaw<
      { text: string }[]
    >`SELECT attributes::text AS text FROM groups WHERE name = ${name}`
    expect(row?.text).toContain('"a": 9007199254740991, "b": 1.1, "c": 1000, "d": 0')
    expect(row?.text).toContain('"f": "1056712345678901234", "g": 1000000000000000000000')
  }
})
