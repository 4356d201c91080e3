import { beforeAll, expect, test } from 'vitest'
import { type Blueprint, type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { loadRegistry, type Registry } from '../../src/models/registry.ts'
import { compile } from '../../src/plan/compile.ts'
import { aGroup, aProvider, aRole } from '../support/entries.ts'

let registry: Registry
beforeAll(async () => {
  registry = await loadRegistry()
})

const of = (...entries: Partial<Entry>[]): Blueprint => ({
  version: 1,
  metadata: { name: 'a' },
  entries: entries.map((entry) => ({
    model: 'service_flows.flow',
    state: 'present',
    identifiers: { slug: 'a' },
    attrs: {},
    ...entry,
  })),
})
const flow: Partial<Entry> = { id: 'flow', attrs: { name: 'A', designation: 'authorization' } }
const key = '6f7e0000-0000-4000-8000-000000000102'
const oauth2: Partial<Entry> = aProvider('oauth2', 'x')
const app: Partial<Entry> = { model: 'service_core.application' }
const group: Partial<Entry> = aGroup('g')

const documents: Record<string, [Blueprint, Record<string, unknown>]> = {
  'an unknown model, with a suggestion': [
    of({ model: 'service_flows.flows' }),
    { 0: { model: ['Unknown model. Did you mean service_flows.flow?'] } },
  ],
  'an unknown model without a similar name': [of({ model: 'x' }), { 0: { model: ['Unknown model.'] } }],
  'an unknown field, with a suggestion': [
    of({ ...app, attrs: { meta_lunch_url: '' } }),
    { 0: { meta_lunch_url: ['Unknown field. Did you mean meta_launch_url?'] } },
  ],
  'an unknown identifier': [
    of({ identifiers: { slug: 'a', slugg: 'b' } }),
    { 0: { slugg: ['Unknown field. Did you mean slug?'] } },
  ],
  'a field with the name of an inherited property': [
    of({ attrs: { constructor: 1, toString: 2 } }),
    { 0: { constructor: ['Unknown field.'], toString: ['Unknown field.'] } },
  ],
  'no identifier': [of({ identifiers: {} }), { 0: { slug: ['This field is required.'] } }],
  'an identifier without a column': [
    of({ ...oauth2, identifiers: { name: 'x', client_type: 'public' } }),
    { 0: { client_type: ['No row can be found by this field: move it to attrs.'] } },
  ],
  'a key of another type': [of({ identifiers: { pk: 5 } }), { 0: { pk: ['Must be a UUID.'] } }],
  'two entries with the same id': [
    of(flow, { ...flow, identifiers: { slug: 'b' } }),
    { 1: { id: ['Another entry is called flow too.'] } },
  ],
  'a KeyOf of nothing': [
    of({ ...oauth2, attrs: { authorization_flow: new KeyOf('flow') } }),
    { 0: { authorization_flow: ['!KeyOf flow names no other entry of this document.'] } },
  ],
  'a KeyOf of the entry itself': [
    of({ ...group, id: 'self', attrs: { parent: new KeyOf('self') } }),
    { 0: { parent: ['!KeyOf self names no other entry of this document.'] } },
  ],
  'a KeyOf of another reference target': [
    of(flow, { ...app, attrs: { provider: new KeyOf('flow') } }),
    { 1: { provider: ['!KeyOf flow is a flow: a provider is needed.'] } },
  ],
  'a Find of another reference target': [
    of({ ...app, attrs: { provider: new Find('service_core.group', { name: 'g' }) } }),
    { 0: { provider: ['!Find service_core.group is a group: a provider is needed.'] } },
  ],
  'a Find of an unknown model': [
    of({ ...app, attrs: { provider: new Find('x', {}) } }),
    { 0: { provider: ['!Find x names no model.'] } },
  ],
  'a tag in a field that is not a reference': [
    of(flow, { ...app, attrs: { name: new KeyOf('flow') } }),
    { 1: { name: ['Takes a plain value: !KeyOf and !Find stand only where a row is referred to.'] } },
  ],
  'an invalid key between tags, with its index': [
    of({ ...aRole('r'), id: 'r' }, { ...group, attrs: { roles: [new KeyOf('r'), '', 5] } }),
    { 1: { roles: { 1: ['May not be empty.'], 2: ['Must be a UUID.'] } } },
  ],
  'several errors at once': [
    of(
      { identifiers: { slug: 'ä' }, attrs: { name: '', designation: 'x' } },
      { ...app, attrs: { nam: 1, open_in_new_tab: 'yes' } },
    ),
    {
      0: {
        slug: ['May hold only letters, digits, hyphens and underscores.'],
        name: ['May not be empty.'],
        designation: [expect.stringContaining('Must be one of: authentication')],
      },
      1: { nam: ['Unknown field. Did you mean name?'], open_in_new_tab: ['Must be true or false.'] },
    },
  ],
}

test.each(Object.entries(documents))('compile reports, without the database: %s', (_, [blueprint, entries]) => {
  expect(compile(blueprint, registry).errors.tree()).toEqual({ entries })
})

const otherValue = (entry: string) =>
  `${entry} names the same row, and has another value for this field: leave one of the two out.`
const alsoPresent = (entry: string) =>
  `${entry} names the same row, and one of the two is absent: leave one of them out.`

const twice: Record<string, [Blueprint, Record<string, unknown>]> = {
  'another value, a secret included, at each field': [
    of(
      { ...oauth2, id: 'first', attrs: { client_secret: 'hidden-one', sub_mode: 'user_id', client_type: 'public' } },
      { ...oauth2, attrs: { client_secret: 'hidden-two', sub_mode: 'user_email', client_type: 'public' } },
    ),
    { 1: { client_secret: [otherValue('Entry "first"')], sub_mode: [otherValue('Entry "first"')] } },
  ],
  'present and absent, in any order': [
    of(
      group,
      { ...group, state: 'absent' },
      { ...group, identifiers: { name: 'h' }, state: 'absent' },
      { ...group, identifiers: { name: 'h' }, state: 'created' },
    ),
    { 1: [alsoPresent('Entry 0 of the document')], 3: [alsoPresent('Entry 2 of the document')] },
  ],
  'must_created behind another entry': [
    of(group, { ...group, state: 'must_created' }),
    { 1: ['Entry 0 of the document names the same row: it is there already.'] },
  ],
  'by key in one entry, and by name in the next': [
    of(
      { ...group, identifiers: { name: 'g', pk: key } },
      { ...group, identifiers: { pk: key }, attrs: { is_superuser: true } },
      { ...group, attrs: { is_superuser: false } },
    ),
    { 2: { is_superuser: [otherValue('Entry 1 of the document')] } },
  ],
  'by the name before a rename': [
    of({ ...group, was: 'before' }, { ...group, identifiers: { name: 'before' }, state: 'absent' }),
    { 1: [alsoPresent('Entry 0 of the document')] },
  ],
  'references to two names, and to none': [
    of(
      { ...group, attrs: { users: ['ada', 'bob'], parent: 'top' } },
      { ...group, attrs: { users: ['Bob', 'ADA'], parent: null } },
      { ...group, attrs: { users: ['ada', 'cy'], parent: 'Top' } },
    ),
    {
      1: { parent: [otherValue('Entry 0 of the document')] },
      2: { users: [otherValue('Entry 0 of the document')] },
    },
  ],
  'a value for a new row, and another for each': [
    of(
      { ...oauth2, attrs: { client_secret: { create: 'hidden-one' } } },
      { ...oauth2, attrs: { client_secret: 'hidden-one' } },
      { ...oauth2, attrs: { client_secret: { generate: true } } },
    ),
    { 2: { client_secret: [otherValue('Entry 0 of the document')] } },
  ],
}

test.each(Object.entries(twice))('of a row that entries name twice, compile reports: %s', (_, [blueprint, entries]) => {
  const { errors } = compile(blueprint, registry)
  expect(errors.tree()).toEqual({ entries })
  expect(JSON.stringify(errors.list)).not.toContain('hidden')
})

const agreeing: Record<string, Blueprint> = {
  'other fields, and equal ones': of(
    { ...group, attrs: { is_superuser: false, users: ['ada', 'bob'] } },
    { ...group, attrs: { users: ['bob', 'ada'], attributes: { a: 1 } } },
  ),
  'another value under conditions': of(
    { ...group, attrs: { is_superuser: true } },
    { ...group, attrs: { is_superuser: false }, conditions: [new Find('service_core.group', { name: 'x' })] },
    { ...group, attrs: { is_superuser: false }, conditions: [true] },
    { ...group, state: 'absent', conditions: [false] },
  ),
  'rows of other models, and in another spelling, which an earlier version may have stored': of(
    group,
    { ...group, identifiers: { name: 'G' }, state: 'absent' },
    { ...aRole('g'), state: 'absent' },
  ),
  'names of rows that have several names': of(
    { ...oauth2, attrs: { property_mappings: ['managed/scope'] } },
    { ...oauth2, attrs: { property_mappings: ['the same one'] } },
  ),
  'a name that one entry changes': of({ ...app, attrs: { slug: 'b' } }),
  'absent twice': of({ ...group, state: 'absent' }, { ...group, state: 'absent' }),
}

test.each(Object.entries(agreeing))('compile lets a row be named twice with %s', (_, blueprint) => {
  expect(compile(blueprint, registry).errors.list).toEqual([])
})

test('ten thousand entries that name one row are compared', () => {
  const entry = { ...group, identifiers: { name: 'g' }, attrs: { attributes: { a: 1 } } }
  const many = Array.from({ length: 9_999 }, () => entry)
  expect(compile(of(...many), registry).errors.any).toBe(false)
  const [error, ...others] = compile(of(...many, { ...entry, attrs: { attributes: { a: 2 } } }), registry).errors.list
  expect(others).toEqual([])
  expect(error?.path).toEqual(['entries', 9_999, 'attributes'])
})

test('a document without errors becomes steps in document order, with its tags', () => {
  const tag = new KeyOf('flow')
  const plan = compile(
    of(flow, {
      ...oauth2,
      attrs: { authorization_flow: tag, property_mappings: [key.toUpperCase()], pk: 5, component: 'shown' },
    }),
    registry,
  )
  expect(plan.errors.list).toEqual([])
  expect(plan.steps.map(({ id, state, model }) => [id, state, model.displayName])).toEqual([
    ['flow', 'present', 'flow'],
    [undefined, 'present', 'provider oauth2'],
  ])
  expect(plan.steps[1]?.attrs).toEqual(
    new Map<string, unknown>([
      ['authorization_flow', tag],
      ['property_mappings', [key]],
    ]),
  )
})

test('the plan has no defaults: they are for new rows only', () => {
  expect(compile(of(app), registry).steps[0]?.attrs.size).toBe(0)
})

test('compile does not change the document', () => {
  const freeze = <Value>(value: Value): Value => {
    if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(freeze)
    return value
  }
  const blueprint = freeze(of(flow, { ...group, attrs: { attributes: { a: [{ b: 1 }] }, users: [3] } }))
  expect(compile(blueprint, registry).errors.any).toBe(false)
})
