import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import pg from 'pg'
import { expect, inject } from 'vitest'
import { connect, type Db } from '../../src/db/client.ts'
import { withLogin } from '../../src/db/roles.ts'
import { atEnd } from './at-end.ts'
import { logins, within } from './template.ts'

type Connection = { readonly url: string; readonly db: Db; readonly pool: pg.Pool }

/**
 * A migrated database of the test file's own, dropped after it. Call it once, at the top of the file or in a hook.
 *
 * @param max connections of each login at most
 * @param isInstalled true: it is bootstrapped, with `adminToken`
 * @returns with the superuser's login, for tests; `service` has that of API and worker, for the product
 */
export async function freshDatabase({
  max = 10,
  isInstalled = false,
}: {
  max?: number
  isInstalled?: boolean
} = {}): Promise<Connection & { readonly service: Connection }> {
  const { url, drop } = await createDatabase(inject('servers')[isInstalled ? 'installed' : 'template'])
  const connectTo = (each: string) => ({
    url: each,
    ...connect(each, { applicationName: 'gatewright-test', max }),
  })
  const [own, service] = [connectTo(url), connectTo(withLogin(url, logins.service))]
  atEnd(async () => {
    await Promise.all([own.db.$disconnect(), service.db.$disconnect()])
    await drop()
  })
  return { ...own, service }
}

/** The URL of a database with nothing in it, dropped after the test file. */
export async function emptyDatabase(): Promise<string> {
  const { url, drop } = await createDatabase('template0')
  atEnd(drop)
  return url
}

async function createDatabase(template: string): Promise<{ url: string; drop(): Promise<void> }> {
  const { postgresUrl } = inject('servers')
  const file = basename(expect.getState().testPath ?? 'test').replace(/\W.*$/, '')
  const name = `${file}_${randomBytes(6).toString('hex')}`
  const quoted = pg.escapeIdentifier(name)
  const server = (text: string) => within(postgresUrl, async (client) => void (await client.query(text)))
  // A copy of its files is quicker than one through the log, where both are in memory.
  await server(`CREATE DATABASE ${quoted} TEMPLATE ${pg.escapeIdentifier(template)} STRATEGY file_copy`)
  const url = new URL(postgresUrl)
  url.pathname = name
  return { url: url.href, drop: () => server(`DROP DATABASE ${quoted} WITH (FORCE)`) }
}
