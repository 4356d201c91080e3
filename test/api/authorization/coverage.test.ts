import { subscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'
import { describe, expect, test } from 'vitest'
import type { Model } from '../../../src/models/define.ts'
import { applyPath, installation } from '../../support/kit.ts'
import { readDescription } from '../../support/openapi.ts'
import { castFor } from './actors.ts'
import { type Row, readMatrix } from './matrix.ts'

/** The table has cells for all of the product: what is new and not in it fails here. */

const routes: string[] = []
// Fastify's own report of the routes, so that none is forgotten in a list of ours.
subscribe('fastify.initialization', (message) => {
  const { fastify } = message as { fastify: FastifyInstance }
  fastify.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.push(`${each} ${url}`)
  })
})

const there = await installation({ workers: 'none' })

const { actors, rows } = await readMatrix()
const operations = new Set(rows.map(({ operation }) => operation))
const model = (name: string): Model => there.engine.registry.byName(name) ?? expect.fail(`there is no model ${name}`)

test('every route has cells, and every cell a route', () => {
  const own = routes.filter((route) => !route.startsWith('HEAD '))
  expect(own.length).toBeGreaterThan(50)
  expect(new Set(own)).toEqual(operations)
})

test('HEAD is there for what is tried by HEAD, too', () => {
  const heads = routes.filter((route) => route.startsWith('HEAD ')).map((route) => route.replace('HEAD ', 'GET '))
  const viewKey = 'GET /api/v3/core/tokens/:identifier/view_key/'
  expect(new Set([...heads, viewKey])).toEqual(new Set([...operations].filter((each) => each.startsWith('GET '))))
  expect(heads).not.toContain(viewKey)
})

test('every operation that the API describes has cells', async () => {
  const { operations: described } = await readDescription(there.app)
  const names = described.map(({ method, path }) => `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`)
  expect(names.length).toBeGreaterThan(12)
  expect([...operations]).toEqual(expect.arrayContaining(names))
})

test('every actor has a column, and every column its actors', async () => {
  const { columns, unauthenticated } = castFor(there)
  expect([...actors.keys()]).toEqual(columns)
  expect(actors.get('unauthenticated')).toEqual(unauthenticated)
})

describe('every writable field has cells, for own and foreign objects', () => {
  const triedFor = (operation: string, whose: string, isTried: (row: Row) => boolean = () => true) =>
    new Set(
      rows
        .filter((row) => row.operation === operation && row.whose === whose && isTried(row))
        .map(({ member }) => member),
    )

  test.each([
    ['POST /api/v3/core/groups/', 'service_core.group', ['new']],
    ['PATCH /api/v3/core/groups/:group_uuid/', 'service_core.group', ['own', "another's"]],
    ['POST /api/v3/core/tokens/', 'service_core.token', ['own', "another's", "superuser's"]],
    ['PATCH /api/v3/core/tokens/:identifier/', 'service_core.token', ['own', "another's", "superuser's"]],
  ] as const)('%s', (operation, name, owners) => {
    const members = new Set(model(name).fields.keys())
    for (const whose of owners) expect([whose, triedFor(operation, whose)]).toEqual([whose, members])
  })

  test('of an application and of a provider of every kind, to add and to change', () => {
    const { kinds } = there.engine.registry
    expect(kinds.size).toBe(9)
    for (const whose of ['new', 'there']) {
      const app = triedFor(`PUT ${applyPath}`, whose, ({ member }) => member.startsWith('app.'))
      expect(app).toEqual(new Set([...model('service_core.application').fields.keys()].map((name) => `app.${name}`)))
      for (const [kind, { fields }] of kinds) {
        const provider = triedFor(
          `PUT ${applyPath}`,
          whose,
          ({ member, value }) => value === kind && member.startsWith('provider.'),
        )
        expect([kind, provider]).toEqual([kind, new Set([...fields.keys()].map((name) => `provider.${name}`))])
      }
    }
  })

  test('of a blueprint: every model', () => {
    const tried = rows.filter(({ operation }) => operation === 'PUT /api/v3/blueprints/').map(({ value }) => value)
    expect(new Set(tried)).toEqual(new Set(there.engine.registry.models.map(({ name }) => name)))
  })
})
