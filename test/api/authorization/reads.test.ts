import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { uuid7 } from '../../../src/ids.ts'
import { type Answer, applyPath, installation, type Made, named } from '../../support/kit.ts'
import type { Actor } from './actors.ts'
import { type Row, rowsOf } from './matrix.ts'
import { stage } from './trial.ts'

/** Reads by GET, and by HEAD, which gets the same answer without a body. */

const there = await installation()
const on = stage(there)
// A 503 of readiness is an answer too.
const atTheDoor = stage(there, ({ status, text }) => (status < 300 || status === 503 ? 'in' : `${status} ${text}`))
const other = await there.make.user()
await there.admin.submit('radius', 'matrix')
const found = await there.db.run.findFirstOrThrow()
const run = found.id
await owns(other)

/** A confirmed device, a consent and a run, named after their owner. */
async function owns({ pk }: Made): Promise<void> {
  const name = `of ${pk}`
  const { db } = there
  if ((await db.totpDevice.count({ where: { name } })) > 0) return
  await db.totpDevice.create({ data: { uuid: randomUUID(), userPk: pk, name, sealedKey: 'sealed' } })
  const { pk: applicationPk } = await db.application.findFirstOrThrow()
  await db.userConsent.create({ data: { userPk: pk, applicationPk, permissions: name } })
  const about = { title: name, kind: 'radius', requestId: name, blueprint: 'sealed' }
  await db.token.create({
    data: {
      pk: uuid7(),
      identifier: `of-${pk}`,
      description: name,
      userPk: pk,
      expiring: false,
      keyHash: randomBytes(32),
    },
  })
  await db.run.create({ data: { id: uuid7(), submitterPk: pk, state: 'cancelled', finishedAt: new Date(), ...about } })
}

/** Whose objects an answer shows: only the caller's own, or those of others too. */
const shows =
  ({ self }: Actor) =>
  ({ text, json }: Answer): string => {
    const has = (user: Made) => text.includes(`"of ${user.pk}"`)
    if (typeof json === 'object' && json !== null && 'user' in json) return isWho(json.user, self) ? 'own' : 'wrong'
    if (!has(self)) return 'not even own'
    return has(other) ? 'all' : 'own'
  }

const showsMembers = ({ json }: Answer): string => {
  const shown = groups.parse(json).results.map(({ users_obj }) => (users_obj === null ? 'keys' : 'full'))
  return [...new Set(shown)].join(' and ')
}

const groups = z.object({ results: z.array(z.object({ users_obj: z.array(z.unknown()).nullable() })) })

const isWho = (user: unknown, { pk }: Made): boolean =>
  typeof user === 'object' && user !== null && 'pk' in user && user.pk === pk

const methods = ['GET', 'HEAD']
const pathOf = ({ operation }: Row) => operation.replace(/^GET /, '')

describe.each(methods)('%s of lists and of oneself', async (method) => {
  const lists = ['auth/token/', 'core/user', 'core/groups/', 'core/tokens/', 'authenticators/', 'blueprints/runs/'].map(
    (path) => `GET /api/v3/${path}`,
  )
  const rows = (await rowsOf(...lists)).filter(([, { operation }]) => !/:|events/.test(operation))
  test.each(rows)('%s', async (_, row) => {
    const says = Object.values(row.cells).some((cell) => cell.includes(' '))
    await on.try(without(row, method), async (_row, actor) => {
      await owns(actor.self)
      const path = pathOf(row)
      const query = /\/(me|token)\/$/.test(path) ? '' : '?page_size=1000'
      const looks = row.member === 'users_obj' ? showsMembers : shows(actor)
      return { method, url: `${path}${query}`, ...(says && { shows: looks }) }
    })
  })
})

/** HEAD has no body that could show objects. */
const without = (row: Row, method: string): Row =>
  method === 'GET'
    ? row
    : {
        ...row,
        cells: Object.fromEntries(
          Object.entries(row.cells).map(([column, cell]) => [column, cell.replaceAll(/(?<=\d) [a-z]+/g, '')]),
        ),
      }

describe.each(methods)('%s of a run', async (method) => {
  const rows = (await rowsOf('GET /api/v3/blueprints/runs/:id/')).filter(([, { operation }]) => !isGone(operation))
  test.each(rows)('%s', (_, row) =>
    on.try(row, async (_row, { self }) => {
      const submitted = row.whose === 'own' ? await ownRun(self) : run
      const key = { 'not there': randomUUID(), 'no uuid': 'no-uuid' }[row.whose] ?? submitted
      const path = (id: string) => pathOf(row).replace(':id', id)
      return { method, url: path(key), ...(row.whose !== 'no uuid' && { missing: path(uuid7()) }) }
    }),
  )
})

/** A run of the actor, recorded once: submitted by the admin and assigned, because not every actor may submit one. */
const runs = new Map<number, string>()
async function ownRun({ pk }: Made): Promise<string> {
  const requestId = `own-${pk}`
  const known = runs.get(pk)
  if (known !== undefined) return known
  const headers = { 'x-request-id': requestId }
  await there.admin.submit('radius', 'matrix', { headers })
  const { id } = await there.db.run.update({
    where: { id: (await there.db.run.findFirstOrThrow({ where: { requestId } })).id },
    data: { submitterPk: pk },
  })
  runs.set(pk, id)
  return id
}

const isGone = (operation: string) => operation.endsWith('/events/')

describe.each(methods)('%s of what is gone', async (method) => {
  const rows = (await rowsOf('GET /api/v3/blueprints/runs/')).filter(([, { operation }]) => isGone(operation))
  test.each(rows)('%s', (_, row) => on.try(row, async () => ({ method, url: pathOf(row).replace(':id', run) })))
})

test.each(await rowsOf('POST /api/v3/auth/token/'))('%s', (_, row) => {
  const oauth = 'urn:ietf:params:oauth:'
  const types = { grant_type: `${oauth}grant-type:token-exchange`, subject_token_type: `${oauth}token-type:jwt` }
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const body = new URLSearchParams(types).toString()
  return on.try(row, async () => ({ method: 'POST', url: '/api/v3/auth/token/', body, headers }))
})

describe.each(methods)('%s of what is open', async (method) => {
  const rows = await rowsOf('GET /-/', 'GET /docs/', 'GET /api/v3/schema/', 'GET /api/v3/blueprints/schema/')
  test.each(rows)('%s', (_, row) => atTheDoor.try(row, async () => ({ method, url: pathOf(row) })))
})

test('what was generated in a run is for its submitter and superusers, and for no other reader', async () => {
  const made = await there.make.user({ groups: ['6f7e0000-0000-4000-8000-000000000502'] })
  const body = await named('radius', 'matrix-generated', { provider: { shared_secret: undefined } })
  const applied = await made.put(applyPath, body)
  const url = String(applied.headers['content-location'])
  const generated = (answer: Answer) =>
    typeof answer.json === 'object' && answer.json !== null && 'generated' in answer.json && answer.json.generated
  expect(generated(await made.get(url))).toMatchObject({ provider: { shared_secret: expect.any(String) } })
  expect(generated(await there.admin.get(url))).toMatchObject({ provider: { shared_secret: expect.any(String) } })
  const reader = await there.make.user({ permissions: ['view_run'] })
  expect(generated(await reader.get(url))).toEqual({})
})
