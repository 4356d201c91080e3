import { expect, test } from 'vitest'
import { applyPath, installation, named } from '../support/kit.ts'

/** `__proto__` is the name of no field, wherever objects are made of text. */

const there = await installation()

const put = (url: string, payload: string, type: 'yaml' | 'json') =>
  there.admin.send({ method: 'PUT', url, headers: { 'content-type': `application/${type}` }, payload })

const blueprint = (attrs: string) =>
  `{"version": 1, "metadata": {"name": "x"}, "entries": [{"model": "service_core.group", "identifiers": {"name": "x"}, "attrs": {"attributes": ${attrs}}}]}`

test.each([
  ['a blueprint', '/api/v3/blueprints/', blueprint('{"__proto__": {"a": 1}}')],
  ['a plan of a blueprint', '/api/v3/blueprints/?dry_run=true', blueprint('{"a": {"__proto__": 1}}')],
  ['the top of a blueprint', '/api/v3/blueprints/', `{"__proto__": 1, ${blueprint('{}').slice(1)}`],
  ['the context of a blueprint', '/api/v3/blueprints/', `{"context": {"__proto__": 1}, ${blueprint('{}').slice(1)}`],
])('of %s: refused, in YAML and in JSON', async (_, url, text) => {
  for (const type of ['yaml', 'json'] as const) {
    const answer = await put(url, text, type)
    expect([type, answer.status, answer.text]).toEqual([
      type,
      400,
      expect.stringMatching(/__proto__.*[Nn]o field may have this name/),
    ])
  }
})

test('of a submission: refused, also in the JSON text of a secret object', async () => {
  const body = JSON.stringify(await named('rac', 'x'))
  const inside = (settings: string) => body.replace(/"settings":\{[^}]*\}/, `"settings":${settings}`)
  for (const settings of [
    '{"__proto__": 1}',
    JSON.stringify('{"__proto__": 1}'),
    JSON.stringify('{"a": {"__proto__": 1}}'),
  ]) {
    const answer = await put(applyPath, inside(settings), 'json')
    expect([settings, answer.status, answer.text]).toEqual([settings, 400, expect.stringContaining('__proto__')])
  }
})

test('of a filter by attributes: refused', async () => {
  const attributes = encodeURIComponent('{"a": {"__proto__": 1}}')
  const { status, text } = await there.admin.get(`/api/v3/core/users/?attributes=${attributes}`)
  expect([status, text]).toEqual([400, expect.stringContaining('__proto__')])
})

test('constructor and prototype are fields like any other, in YAML and in JSON', async () => {
  const text = blueprint('{"constructor": {"prototype": {"a": 1}}}')
  for (const type of ['yaml', 'json'] as const) {
    const answer = await put('/api/v3/blueprints/?dry_run=true', text, type)
    expect([type, answer.status]).toEqual([type, 200])
  }
})
