import { expect, test } from 'vitest'
import { z } from 'zod'
import { bootstrap } from '../../src/apply/bootstrap.ts'
import type { Db } from '../../src/db/client.ts'
import { defineProvider } from '../../src/models/provider.ts'
import { counts, freshDatabase, kinds, loadEngine } from '../support/kit.ts'

/** The shipped role of deployers takes every kind of the registry, also those that a later version brings. */

const engine = await loadEngine()
const probe = defineProvider({
  ...{ kind: 'probe', verboseName: 'Probe', flows: 'none' },
  settings: z.object({}),
})
const later = {
  ...engine,
  registry: { ...engine.registry, kinds: new Map([...engine.registry.kinds, ['probe', probe]]) },
}

const start = (db: Db, version = engine) => bootstrap(db, version, () => 'the first token')
const roleIn = (db: Db) => db.role.findFirstOrThrow({ where: { name: 'Application deployer' } })
const needed = (resources: readonly string[]) =>
  resources.flatMap((resource) => ['view', 'add', 'change'].map((verb) => `${verb}_${resource}`)).toSorted()
const shipped = needed(['application', ...kinds.map((kind) => `${kind}provider`)])
const ofProbe = needed(['probeprovider'])

test('a kind that a later version brings is added once, and recorded', async () => {
  const { db, service } = await freshDatabase()
  await start(service.db)
  expect((await roleIn(db)).permissions.toSorted()).toEqual(shipped)
  expect(await counts(db)).toMatchObject({ audit_rows: 1 })
  expect(await start(service.db, later)).toBe(false)
  expect((await roleIn(db)).permissions.toSorted()).toEqual([...shipped, ...ofProbe].toSorted())
  expect(await db.auditRow.findFirst({ orderBy: { pk: 'desc' } })).toMatchObject({
    ...{ action: 'bootstrap', actorName: 'gatewright' },
    changes: [{ model: 'service_rbac.role', action: 'update', fields: ['permissions'] }],
  })
  // What an operator takes from the role afterwards is not given back.
  await db.role.updateMany({ data: { permissions: shipped } })
  await start(service.db, later)
  expect((await roleIn(db)).permissions).toEqual(shipped)
  expect(await counts(db)).toMatchObject({ audit_rows: 2 })
})

test('what an operator added to the role stays', async () => {
  const { db, service } = await freshDatabase()
  await start(service.db)
  await db.role.updateMany({ data: { permissions: { push: ['view_group', 'view_probeprovider'] } } })
  await start(service.db, later)
  expect((await roleIn(db)).permissions.toSorted()).toEqual([...shipped, ...ofProbe, 'view_group'].toSorted())
})

test('a role from which an operator took a kind, or that is deleted, stays as it is', async () => {
  const { db, service } = await freshDatabase()
  await start(service.db)
  const fewer = shipped.filter((name) => name !== 'add_racprovider')
  await db.role.updateMany({ data: { permissions: fewer } })
  await start(service.db, later)
  expect((await roleIn(db)).permissions).toEqual(fewer)

  const other = await freshDatabase()
  await start(other.service.db)
  await other.db.role.deleteMany()
  await start(other.service.db, later)
  expect(await counts(other.db)).toMatchObject({ roles: 0, audit_rows: 1 })
})
