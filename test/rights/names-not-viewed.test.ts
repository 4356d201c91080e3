import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { installation } from '../support/installation.ts'

/** What is refused names a row by its own name to those who may view it; to others, by what they sent. */

const there = await installation()

const group = (secret: string, more: object = {}) =>
  there.db.group.create({ data: { pk: uuid7(), name: secret, ...more } })
const entry = (model: string, identifiers: object, more: object = {}) => ({ model, identifiers, ...more })
const groups = 'service_core.group'

type Case = readonly [
  what: string,
  permissions: readonly string[],
  view: readonly string[],
  /** @returns the entries that are refused, and what the answer has in place of the name */
  prepare: (secret: string, name: string) => Promise<readonly [entries: readonly object[], instead: string]>,
]

const cases: readonly Case[] = [
  [
    'a denial',
    ['change_group'],
    ['view_group'],
    async (secret) => {
      const { pk } = await group(secret)
      return [
        [entry(groups, { pk }, { attrs: { roles: [(await there.make.role([])).pk] } })],
        `update group \\"${pk}\\": `,
      ]
    },
  ],
  [
    'a row in use',
    ['delete_group'],
    ['view_group'],
    async (secret, name) => {
      const { pk } = await group(secret)
      await group(name, { parentPk: pk })
      return [[entry(groups, { pk }, { state: 'absent' })], `group \\"${pk}\\" is the parent of `]
    },
  ],
  [
    'a row that is there already',
    ['add_group'],
    ['view_group'],
    async (secret, name) => {
      const { pk } = await group(secret)
      return [
        [entry(groups, { pk }, { attrs: { name }, state: 'must_created' })],
        `group \\"${name}\\" is there already`,
      ]
    },
  ],
  [
    'a name that compares as another',
    ['add_group'],
    ['view_group'],
    async (secret) => {
      await group(secret)
      const name = secret.toUpperCase()
      return [[entry(groups, { name })], `\\"${name}\\" is taken by another group.`]
    },
  ],
  [
    'identifiers of several rows',
    ['change_group'],
    ['view_group'],
    async (secret, name) => {
      const { pk } = await group(secret)
      await group(name)
      return [[entry(groups, { pk, name })], 'The identifiers match more than one group.']
    },
  ],
  [
    'a provider, and the application that has it',
    ['add_application', 'change_application', 'change_scimprovider'],
    ['view_application', 'view_scimprovider'],
    async (secret, name) => {
      const data = { uuid: randomUUID(), kind: 'scim', name: secret, settings: {}, secrets: {} }
      const { pk } = await there.db.provider.create({ data })
      await there.db.application.create({ data: { pk: uuid7(), name: secret, slug: secret, providerPk: pk } })
      const entries = [entry('service_core.application', { slug: name }, { attrs: { name, provider: pk } })]
      return [entries, `The provider ${pk} belongs to another application.`]
    },
  ],
  [
    'a client id that another provider has',
    ['add_oauth2provider', 'change_oauth2provider'],
    ['view_oauth2provider'],
    async (secret, name) => {
      const settings = { client_id: `id-${name}` }
      const data = {
        uuid: randomUUID(),
        kind: 'oauth2',
        name: secret,
        oauth2ClientId: settings.client_id,
        settings,
        secrets: {},
      }
      await there.db.provider.create({ data })
      const attrs = { authorization_flow: 'default-authorization-explicit', ...settings }
      const entries = [entry('service_providers_oauth2.oauth2provider', { name }, { attrs })]
      return [entries, `\\"id-${name}\\" is taken by another provider oauth2.`]
    },
  ],
]

test.each(cases)('%s', async (_, permissions, view, prepare) => {
  const [secret, name] = [`secret-${randomUUID()}`, `name-${randomUUID()}`]
  const [entries, instead] = await prepare(secret, name)
  const body = { version: 1, metadata: { name: 'n' }, entries }
  const ask = async (...more: readonly string[]) => {
    const { put } = await there.make.user({ permissions: [...permissions, ...more] })
    const answers = [await put('/api/v3/blueprints/?dry_run=true', body), await put('/api/v3/blueprints/', body)]
    for (const { status, text } of answers) expect([400, 403], text).toContain(status)
    return answers.map(({ text }) => text)
  }
  for (const text of await ask()) {
    expect(text).not.toContain(secret)
    expect(text).toContain(instead)
  }
  for (const text of await ask(...view)) expect(text).toContain(secret)
})
