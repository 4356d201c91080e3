import { describe, expect, test } from 'vitest'
import { findSpots } from '../../src/document/places.ts'
import { lookAt } from '../../src/document/visibility.ts'
import { readWritten } from '../../src/document/yaml.ts'
import type { FieldPath } from '../../src/errors.ts'
import { loadRegistry } from '../../src/models/registry.ts'

const registry = await loadRegistry()

const oauth2 = 'service_providers_oauth2.oauth2provider'
const text = `version: 1
metadata: {name: "the name", nam: hunter2}
entries:
  - model: ${oauth2}
    id: grafana
    identifiers: {name: grafana}
    attrs:
      client_secret: hunter2
      redirect_uris:
        - url: one
        - {url: "two", matching_mode: strict}
      "client\\x5ftype": public
      client_secrte: hunter2
  - model: ${oauth2}
    identifiers: {name: other}
    attrs: {client_secret: hunter2, client_type: x}
`

const spot = (there: string, ...path: FieldPath) => {
  const [found] = findSpots(there, [path], lookAt(readWritten(there), registry))
  return found
}

describe('the place of', () => {
  test.each<[string, FieldPath, [line: number, column: number, source?: string] | undefined]>([
    ['the document', [], [1, 1, 'version: 1']],
    ['a field of it', ['version'], [1, 1, 'version: 1']],
    ['a missing field is what lacks it', ['owner'], [1, 1, 'version: 1']],
    [
      'a field in one line with a masked one',
      ['metadata', 'name'],
      [2, 12, 'metadata: {name: "the name", nam: ********}'],
    ],
    ['an entry', ['entries', 1], [14, 5, `  - model: ${oauth2}`]],
    ['a field of an entry', ['entries', 0, 'identifiers', 'name'], [6, 19, '    identifiers: {name: grafana}']],
    ['a missing field of an entry', ['entries', 0, 'attrs', 'invalidation_flow'], [7, 5, '    attrs:']],
    ['a secret field has no source', ['entries', 0, 'attrs', 'client_secret'], [8, 7]],
    ['an item of a list', ['entries', 0, 'attrs', 'redirect_uris', 0], [10, 11, '        - url: one']],
    [
      'a field in an item',
      ['entries', 0, 'attrs', 'redirect_uris', 1, 'matching_mode'],
      [11, 24, '        - {url: "two", matching_mode: strict}'],
    ],
    ['a key with an escape', ['entries', 0, 'attrs', 'client_type'], [12, 7, '      "client\\x5ftype": public']],
    ['an unknown field is masked', ['entries', 0, 'attrs', 'client_secrte'], [13, 7, '      client_secrte: ********']],
    [
      'a field beside a secret',
      ['entries', 1, 'attrs', 'client_type'],
      [16, 37, '    attrs: {client_secret: ********, client_type: x}'],
    ],
  ])('%s', (_, path, expected) => {
    const [line, column, source] = expected ?? []
    expect(spot(text, ...path)).toEqual({ line, column, ...(source !== undefined && { source }) })
  })

  test('a secret text of many lines is masked in each', () => {
    const there = `entries:\n- model: ${oauth2}\n  attrs: {client_secret: "hunter\n    hunter", client_typ: 1}\n`
    expect(spot(there, 'entries', 0, 'attrs', 'client_typ')).toEqual({
      line: 4,
      column: 14,
      source: '********", client_typ: ********}',
    })
  })

  test('what stands inside of a tag: none, and that of the tag itself is found', () => {
    const there = 'entries:\n- model: x\n  attrs: !If [true, {name: a}, {}]\n  identifiers: {a: !Env B}\n'
    expect(
      findSpots(
        there,
        [
          ['entries', 0, 'attrs', 'name'],
          ['entries', 0, 'attrs', 0],
          ['entries', 0, 'attrs'],
        ],
        () => 'shown',
      ),
    ).toEqual([undefined, undefined, { line: 3, column: 3, source: '  attrs: !If [true, {name: a}, {}]' }])
    const [inside] = findSpots('entries: !If [1, [{model: x}]]', [['entries', 0, 'model']], () => 'shown')
    expect(inside).toBeUndefined()
  })

  test('an item without text is its list', () => {
    expect(spot('version: 1\nentries:\n-\n- 1\n', 'entries', 0)).toMatchObject({ line: 2, column: 1 })
    expect(spot('version: 1\nentries:\n-\n- 1\n', 'entries', 1)).toMatchObject({ line: 4, column: 3 })
  })

  test('what stands behind an alias', () => {
    const there = 'a: &x 1\nb: [*x, 2]\nc: *x\nd: 3\n'
    const paths = [['b', 1], ['c'], ['d']]
    expect(findSpots(there, paths, () => 'shown')).toMatchObject([
      { line: 2, column: 9 },
      { line: 3, column: 1 },
      { line: 4, column: 1 },
    ])
  })

  test('a line of many characters is cut, and ends of lines are left out', () => {
    const found = spot(`version: 1\r\nowner: ${'x'.repeat(500)}\r\nprune: no\r\n`, 'owner')
    expect(found).toEqual({ line: 2, column: 1, source: `owner: ${'x'.repeat(193)}` })
    expect(spot('version: 1\r\nprune: no\r\n', 'prune')?.source).toBe('prune: no')
  })
})

test('a hundred places in a large text are found in one pass', () => {
  const count = 900
  const there = `version: 1\nentries:\n${`- model: ${oauth2}\n  attrs: {client_type: "${'x'.repeat(4_000)}"}\n`.repeat(count)}`
  const paths = Array.from({ length: 100 }, (_, index) => ['entries', count - 1 - index, 'attrs', 'client_type'])
  const spots = findSpots(there, paths, lookAt(readWritten(there), registry))
  expect(spots.map((each) => each?.line)).toEqual(paths.map(([, index]) => Number(index) * 2 + 4))
})
