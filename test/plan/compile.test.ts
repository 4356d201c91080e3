import { beforeAll, describe, expect, test } from 'vitest'
import { type Blueprint, type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { loadRegistry, type Registry } from '../../src/models/registry.ts'
import { compile } from '../../src/plan/compile.ts'

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
const oauth2: Partial<Entry> = { model: 'service_providers_oauth2.oauth2provider', identifiers: { name: 'x' } }
const app: Partial<Entry> = { model: 'service_core.application' }
const group: Partial<Entry> = { model: 'service_core.group', identifiers: { name: 'g' } }

const theMask = 'This is the mask that answers show for a secret: leave this field out to keep the secret.'

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
  'the mask of a secret, whatever its type': [
    of(
      { ...oauth2, attrs: { client_secret: '********', client_id: '********' } },
      {
        model: 'service_providers_workspace_sync_a.workspace_sync_aprovider',
        identifiers: { name: 'w' },
        attrs: { credentials: '********' },
      },
      { model: 'service_crypto.certificatekeypair', identifiers: { name: 'c' }, attrs: { key_data: '********' } },
    ),
    {
      0: { client_secret: [theMask] },
      1: { credentials: [theMask] },
      2: { key_data: [theMask] },
    },
  ],
  'a key of another type': [of({ identifiers: { pk: 5 } }), { 0: { pk: ['Must be a UUID.'] } }],
  'two entries with the same id': [
    of(flow, { ...flow, identifiers: { slug: 'b' } }),
    { 1: { id: ['Another entry is called flow too.'] } },
  ],
  'a KeyOf of nothing': [
    of({ ...oauth2, attrs: { authorization_flow: new KeyOf('flow') } }),
    { 0: { authorization_flow: ['!KeyOf flow names nothing that stands before this entry.'] } },
  ],
  'a KeyOf of a later entry': [
    of({ ...oauth2, attrs: { authorization_flow: new KeyOf('flow') } }, flow),
    { 0: { authorization_flow: ['!KeyOf flow names nothing that stands before this entry.'] } },
  ],
  'a KeyOf of the entry itself': [
    of({ ...group, id: 'self', attrs: { parent: new KeyOf('self') } }),
    { 0: { parent: ['!KeyOf self names nothing that stands before this entry.'] } },
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
    { 0: { provider: ['!Find x names nothing that stands before this entry.'] } },
  ],
  'a tag in a field that is not a reference': [
    of(flow, { ...app, attrs: { name: new KeyOf('flow') } }),
    { 1: { name: ['Takes a plain value: !KeyOf and !Find stand only where a row is referred to.'] } },
  ],
  'an invalid key between tags, with its index': [
    of(
      { model: 'service_rbac.role', id: 'r', identifiers: { name: 'r' } },
      { ...group, attrs: { roles: [new KeyOf('r'), '', 5] } },
    ),
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

describe('compile reports, without the database', () => {
  test.each(Object.entries(documents))('%s', (_, [blueprint, entries]) => {
    expect(compile(blueprint, registry).errors.tree()).toEqual({ entries })
  })
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
