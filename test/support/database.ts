import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import pg from 'pg'
import { expect, inject } from 'vitest'
import { connect, type Db } from '../../src/db/client.ts'
import { atEnd } from './at-end.ts'
import { within } from './template.ts'

/**
 * A migrated database of the test file's own, dropped after it. Call it once, in `beforeAll` or at the top.
 *
 * @param max connections of `db` at most
 */
export async function freshDatabase({
  max = 10,
}: {
  max?: number
} = {}): Promise<{ url: string; db: Db; pool: pg.Pool }> {
  const { postgresUrl, template } = inject('servers')
  const file = basename(expect.getState().testPath ?? 'test').replace(/\W.*$/, '')
  const name = `${file}_${randomBytes(6).toString('hex')}`
  const quoted = pg.escapeIdentifier(name)
  await within(postgresUrl, (client) =>
    client.query(`CREATE DATABASE ${quoted} TEMPLATE ${pg.escapeIdentifier(template)}`),
  )
  const url = new URL(postgresUrl)
  url.pathname = name
  const { db, pool } = connect(url.href, { applicationName: 'gatewright-test', max })
  atEnd(async () => {
    await db.$disconnect()
    await within(postgresUrl, (client) => client.query(`DROP DATABASE ${quoted} WITH (FORCE)`))
  })
  return { url: url.href, db, pool }
}
