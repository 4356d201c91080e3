import pg from 'pg'
import { within } from '../test/support/template.ts'
import type { Size } from '../tools/seed/organisation.ts'
import { withoutIndexes } from './bulk.ts'
import { install, type Kept, openKept, startKept } from './kept.ts'
import { fillLedger } from './pages-seed.ts'

/** An installation with a million of everything, which is seeded once and stays in its database. */

const groupsPerUser = 1 / 20
const applicationsPerUser = 1 / 10
/** The groups of `s1-member`, or all if there are fewer. */
export const groupsOfMember = 2_000

/** The product's own seed begins names with it. */
export const prefix = 's1'

/** A thousand users come with 50 groups, 100 applications, 1 000 runs and audit rows, 2 000 consents. */
const sizeOf = (users: number): Size => ({
  users,
  groups: Math.max(80, Math.round(users * groupsPerUser)),
  applications: Math.round(users * applicationsPerUser),
})

/**
 * Fills the database of this name on a server, unless that was done already. What an interrupted seed left is dropped.
 *
 * @returns the installation
 */
export async function seedLarge(
  server: string,
  name: string,
  users: number,
  say: (text: string) => void,
): Promise<Kept> {
  const known = await openKept(server, name)
  if (await isSeeded(known.database)) return known
  await within(server, (client) => client.query(`DROP DATABASE ${pg.escapeIdentifier(name)} WITH (FORCE)`))
  const kept = await openKept(server, name)
  say('tables')
  await install(kept)
  await within(kept.database, async (client) => {
    await client.query('SET synchronous_commit = off')
    const seeding = { url: kept.database, secretKey: kept.secretKey, runs: users, size: sizeOf(users), say }
    const write = async () => {
      await fillLedger(client, seeding)
      say('consents')
      await client.query(moreConsents)
      await client.query(groupsOfOne)
    }
    await withoutIndexes(client, write, say)
    say('vacuum')
    await client.query('VACUUM (ANALYZE)')
    say('first rounds of a worker')
    const started = await startKept(kept)
    await started.stop()
    await client.query('VACUUM (ANALYZE)')
    await client.query(`COMMENT ON DATABASE ${pg.escapeIdentifier(name)} IS '${seededComment}'`)
  })
  return kept
}

const seededComment = 'seeded'

const isSeeded = (database: string): Promise<boolean> =>
  within(database, async (client) => {
    const { rows } = await client.query<{ comment: string | null }>(
      `SELECT shobj_description(oid, 'pg_database') AS comment FROM pg_database WHERE datname = current_database()`,
    )
    return rows[0]?.comment === seededComment
  })

/** Each user has one more than the seed gives, with scopes of its own. Few applications have most. */
const moreConsents = `INSERT INTO user_consents (user_pk, application_pk, permissions, expires, expiring)
  SELECT u.pk, a.pk, 'openid groups', now() + make_interval(mins => u.n), true
  FROM (SELECT pk, row_number() OVER (ORDER BY pk)::integer AS n, random() AS what FROM users) u
    JOIN (SELECT pk, row_number() OVER (ORDER BY pk) - 1 AS n FROM applications) a
      ON a.n = floor((SELECT count(*) FROM applications) * power(u.what, 2))`

/** Groups that make superusers are left out. */
const groupsOfOne = `INSERT INTO memberships (group_pk, user_pk)
  SELECT g.pk, u.pk FROM users u, (
    SELECT pk FROM groups WHERE NOT is_superuser AND NOT EXISTS (
      SELECT FROM group_ancestors a JOIN groups s ON s.pk = a.ancestor_pk WHERE a.group_pk = groups.pk AND s.is_superuser)
    ORDER BY pk LIMIT ${groupsOfMember}) g
  WHERE u.username = '${prefix}-member'
    AND NOT EXISTS (SELECT FROM memberships m WHERE m.group_pk = g.pk AND m.user_pk = u.pk)`
