import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Entry, KeyOf } from '../../../src/blueprint/document.ts'
import { draft, drawsFor, Unforeseen } from '../../../src/blueprint/outright.ts'
import { type Outcome, work } from '../../../src/blueprint/run/work.ts'
import type { Db } from '../../../src/db/client.ts'
import { type Statement, sql } from '../../../src/db/sql.ts'
import { uuid7 } from '../../../src/ids.ts'
import { kinds, named } from '../../support/installation.ts'
import { statementsOf } from '../../support/statements.ts'
import { until } from '../../support/until.ts'
import { application, flow, oauth2 } from '../engine.ts'
import { held, type Stand, stand } from './stand.ts'

let there: Stand
beforeAll(async () => {
  there = await stand()
})

const isLook = (text: string) => text.includes('AS looks')
const options = async (id: string) => (await there.run(id)).options

describe('of which nothing is there yet', () => {
  test.each(kinds)('%s is written without a look, under the key that was drawn with its record', async (kind) => {
    const { id, name } = await there.recorded(await named(kind, `outright-${kind}`))
    const sent = await statementsOf(() => there.work(id))
    expect(sent.filter(isLook)).toEqual([])
    expect(sent[0]).toMatch(/^SELECT [\s\S]* FROM runs/)
    expect(sent.slice(1).map((text) => /UPDATE runs|INSERT INTO "?\w+|advisory/.exec(text)?.[0])).toEqual([
      'advisory',
      'UPDATE runs',
      'INSERT INTO "providers',
      'INSERT INTO "applications',
      undefined,
    ])
    const { pk } = await there.db.prisma.provider.findUniqueOrThrow({ where: { name } })
    expect(await options(id)).toMatchObject({ drawn: { provider: pk } })
    expect((await there.run(id)).logs).toEqual([
      `provider ${kind} "${name}" created (pk ${pk})`,
      expect.stringMatching(`^application "${name}" created`),
    ])
  })

  test('but by then it is: what others wrote in between is looked at', async () => {
    const body = await named('oauth2', 'in-between')
    const other = { ...body, app: { ...body.app, meta_publisher: 'Other' } }
    const [first, same, different] = [
      await there.recorded(body),
      await there.recorded(body),
      await there.recorded(other),
    ]
    expect(await there.work(first.id)).toBe('applied')
    const sent = await statementsOf(() => there.work(same.id))
    expect(sent.filter(isLook)).toHaveLength(1)
    expect((await there.run(same.id)).logs).toEqual([
      'provider oauth2 "in-between" unchanged',
      'application "in-between" unchanged',
    ])
    expect(await there.work(different.id)).toBe('applied')
    expect((await there.run(different.id)).logs).toEqual([
      'provider oauth2 "in-between" unchanged',
      'application "in-between" updated: meta_publisher',
    ])
    expect(await there.db.prisma.provider.count({ where: { name: 'in-between' } })).toBe(1)
  })

  test('but by then it is, and it was to be created only', async () => {
    const body = await named('oauth2', 'create-only')
    const [first, second] = [await there.recorded(body), await there.recorded(body, { createOnly: true })]
    expect(await there.work(first.id)).toBe('applied')
    expect(await there.work(second.id)).toBe('refused')
    expect(await there.run(second.id)).toMatchObject({ applied: false, reason: 'precondition_failed' })
    expect(await written(second.id, 'create-only')).toEqual([1, 0])
  })

  test('and whose connection is lost before the answer: it is tried again', async () => {
    const { id, name } = await there.recorded()
    const release = await held(there, (tx) => tx.query(sql`LOCK TABLE providers IN SHARE MODE`))
    const working = there.work(id)
    const waiting = sql`SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
    const [found] = await until(
      async () => {
        const rows = await there.db.query<{ pid: number }>(waiting)
        return rows.length === 1 && rows
      },
      { what: 'the rows to wait for the table' },
    )
    await there.db.query(sql`SELECT pg_terminate_backend(${found?.pid ?? 0}::integer)`)
    await release()
    expect(await working).toBe('applied')
    expect(await written(id, name)).toEqual([1, 1])
    expect(there.log.filter((line) => line.includes(id))).toEqual([expect.stringContaining('trying the run again')])
  })

  test('and whose run is cancelled in between: nothing is written', async () => {
    const { id, name } = await there.recorded()
    const cancel = () => sql`UPDATE runs SET state = 'cancelled', finished_at = now() WHERE id = ${id}`
    expect(await workAfter(id, () => there.db.query(cancel()))).toBe('duplicate')
    expect(await written(id, name)).toEqual([0, 0])
  })

  describe('by somebody', () => {
    const deployers = { where: { name: 'deployers' } }
    const setActive = (isActive: boolean) => there.db.prisma.user.update({ where: { pk: user }, data: { isActive } })
    let user: number
    beforeEach(async () => {
      await there.db.prisma.role.deleteMany(deployers)
      await there.db.prisma.group.deleteMany(deployers)
      await there.db.prisma.user.deleteMany({ where: { username: 'deployer' } })
      const role = { name: 'deployers', permissions: ['add_application', 'add_oauth2provider'] }
      const { pk: rolePk } = await there.db.prisma.role.create({ data: { pk: uuid7(), ...role } })
      const roles = { create: { rolePk } }
      const { pk: groupPk } = await there.db.prisma.group.create({ data: { pk: uuid7(), name: 'deployers', roles } })
      const memberships = { create: { groupPk } }
      const data = { uuid: randomUUID(), username: 'deployer', memberships }
      user = (await there.db.prisma.user.create({ data })).pk
    })

    test.each([
      ['who may', () => Promise.resolve(), 'applied', 1],
      ['who is no longer active by then', () => setActive(false), 'refused', 0],
      ['whose rights are gone by then', () => there.db.prisma.role.deleteMany(deployers), 'refused', 0],
      ['who is gone by then', () => there.db.prisma.user.delete({ where: { pk: user } }), 'refused', 0],
    ])('%s', async (what, change, outcome, rows) => {
      const { id, name } = await there.recorded(await named('oauth2', `by-${what.replaceAll(' ', '-')}`), { by: user })
      expect(await workAfter(id, change)).toBe(outcome)
      expect(await written(id, name)).toEqual([rows, rows])
    })
  })

  /** What is done in `meanwhile` comes between the read of the run and its transaction. */
  function workAfter(id: string, meanwhile: () => Promise<unknown>): Promise<Outcome> {
    const query: Db['query'] = async <Row>(statement: Statement) => {
      const rows = await there.db.query<Row>(statement)
      if (statement.text.includes('FROM runs')) await meanwhile()
      return rows
    }
    return work({ ...there.worker, db: { ...there.db, query } }, id)
  }

  const written = async (id: string, name: string) => [
    await there.db.prisma.provider.count({ where: { name } }),
    await there.db.prisma.auditRow.count({ where: { runId: id } }),
  ]
})

test('what is there already is looked at', async () => {
  const body = await named('ldap', 'there')
  const { id } = await there.recorded(body)
  await there.work(id)
  const again = await there.recorded(body)
  expect(await options(again.id)).not.toHaveProperty('drawn')
  const sent = await statementsOf(() => there.work(again.id))
  expect(sent.filter(isLook)).toHaveLength(1)
})

describe('keys are drawn for', () => {
  const unnamed = oauth2('nobody', { client_id: 'nobody' })
  const provider = { ...unnamed, id: 'p' }
  const mapping = {
    model: 'service_mappings.propertymapping',
    identifiers: { name: 'nobody', kind: 'oauth2' },
  }

  test.each<[string, Partial<Entry>[], string[] | undefined]>([
    ['a provider and its application', [provider, application('nobody', { provider: new KeyOf('p') })], ['p']],
    ['nobody: keys of flows are made up', [flow('nobody')], []],
    ['no document with an entry that has no name', [unnamed], undefined],
    ['no document with a row that no unique index guards', [mapping], undefined],
    ['no long document', [flow('a'), flow('b'), flow('c')], undefined],
    ['no document of which something is there', [flow('default-authorization-explicit')], undefined],
  ])('%s', async (_, entries, expected) => {
    const draws = drawsFor(await there.check(entries))
    expect(draws?.map(({ entry }) => entry)).toEqual(expected)
  })
})

test('a draft answers nothing', async () => {
  await expect(draft().tx.query(sql`SELECT 1`)).rejects.toThrow(Unforeseen)
})
