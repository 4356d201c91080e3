import { z } from 'zod'
import { type AuditedChange, auditRow } from '../apply/audit.ts'
import { retrying } from '../db/backoff.ts'
import { type Db, type Tx, transaction } from '../db/client.ts'
import { brokenConstraint, isCollision, statementProblem } from '../db/errors.ts'
import { query } from '../db/raw.ts'
import { Problem } from '../errors.ts'
import { withExample } from '../example.ts'
import type { Api } from '../http/api.ts'
import { dateTime, int32, line, shownLine } from '../models/fields.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, ownersWith, stacksOf } from '../permissions.ts'

/**
 * POST /api/v3/consumers/oauth2/consents/, PATCH /api/v3/consumers/users/: what servers that sign users in tell back. A request says
 * the same again as often as it likes. What names nothing is left out, and the answer lists it: the rest is recorded.
 */

/** One request has at most as many. */
const atOnce = 1_000

const items = <Schema extends z.ZodType>(item: Schema) => z.array(item).min(1).max(atOnce)

const user = z
  .union([line(150).overwrite((name) => name.normalize('NFC')), int32(1)], 'Must be a username, or the key of a user.')
  .meta({ description: 'The username, or the key, of the user.', examples: ['ada'] })

const recorded = z
  .object({
    recorded: withExample(z.int(), 2, 'How many are recorded now: by this request, or before.'),
    unknown: z.array(z.int()).meta({
      description: 'The others, by their index: there is no such user, or no such client that the caller may view.',
      examples: [[1]],
    }),
  })
  .meta({ id: 'Recorded' })

const consents = z
  .strictObject({
    consents: items(
      z.strictObject({
        user,
        client_id: withExample(line(255), 'grafana'),
        permissions: withExample(shownLine(500), 'openid profile email'),
        expires: dateTime().nullable().default(null).meta({ description: 'Null: it does not expire.' }),
      }),
    ),
  })
  .meta({ id: 'SentConsents' })

const logins = z
  .strictObject({
    users: items(
      z.strictObject({
        user,
        last_login: dateTime().meta({
          description: 'An earlier one than is known changes nothing, and a later one than now is now.',
        }),
      }),
    ),
  })
  .meta({ id: 'SentLogins' })

/** Users by username or key, in SQL: `$1` and `$2` are lists of as many as there are items. */
const userKey = `coalesce((SELECT u.pk FROM users u WHERE u.username = s.username), (SELECT u.pk FROM users u WHERE u.pk = s.key))`
const usersOf = (sent: readonly { readonly user: string | number }[]) => [
  sent.map(({ user }) => (typeof user === 'string' ? user : null)),
  sent.map(({ user }) => (typeof user === 'string' ? null : user)),
]

const unknownIn = (condition: string) =>
  `ARRAY(SELECT s.n::integer - 1 FROM sent s WHERE ${condition} ORDER BY s.n) AS unknown`
const unknownRow = z.object({ unknown: z.array(z.int()) })
const consentRow = unknownRow.extend({
  written: z.array(z.object({ key: z.int(), action: z.enum(['create', 'update']) })),
})

/** Writes consents, in the order of their keys: two requests never wait for each other. The last of one user counts. */
const consentsText = `WITH sent AS MATERIALIZED (
    SELECT s.*, ${userKey} AS user_pk, (SELECT a.pk FROM providers p JOIN applications a ON a.provider_pk = p.pk
        WHERE p.oauth2_client_id = s.client_id AND p.kind = $6 AND ($7::text[] IS NULL OR p.owner = ANY($7::text[]))) AS application_pk
      FROM unnest($1::text[], $2::integer[], $3::text[], $4::text[], $5::text[]::timestamptz[]) WITH ORDINALITY
        AS s (username, key, client_id, permissions, expires, n)
  ), written AS (
    INSERT INTO user_consents (user_pk, application_pk, permissions, expires, expiring)
      SELECT DISTINCT ON (user_pk, application_pk, permissions) user_pk, application_pk, permissions, expires, expires IS NOT NULL
        FROM sent WHERE user_pk IS NOT NULL AND application_pk IS NOT NULL ORDER BY user_pk, application_pk, permissions, n DESC
      ON CONFLICT (user_pk, application_pk, permissions) DO UPDATE SET expires = excluded.expires, expiring = excluded.expiring
        WHERE (user_consents.expires, user_consents.expiring) IS DISTINCT FROM (excluded.expires, excluded.expiring)
      RETURNING pk, xmax = 0 AS is_new
  ) SELECT ${unknownIn('s.user_pk IS NULL OR s.application_pk IS NULL')}, coalesce((SELECT jsonb_agg(jsonb_build_object(
      'key', pk, 'action', CASE WHEN is_new THEN 'create' ELSE 'update' END) ORDER BY pk) FROM written), '[]') AS written`

/** Locks the users in the order of their keys. */
const loginsText = `WITH sent AS MATERIALIZED (
    SELECT s.n, ${userKey} AS pk, least(s.at, now()) AS at
      FROM unnest($1::text[], $2::integer[], $3::text[]::timestamptz[]) WITH ORDINALITY AS s (username, key, at, n)
  ), newer AS MATERIALIZED (
    SELECT u.pk, n.at FROM (SELECT pk, max(at) AS at FROM sent GROUP BY pk) n JOIN users u ON u.pk = n.pk
      WHERE u.last_login IS NULL OR u.last_login < n.at ORDER BY u.pk FOR NO KEY UPDATE OF u
  ), written AS (
    UPDATE users u SET last_login = greatest(u.last_login, newer.at) FROM newer WHERE u.pk = newer.pk
  ) SELECT ${unknownIn('s.pk IS NULL')}`

export function consumerActRoutes(app: Api, db: Db, { kinds }: Registry): void {
  for (const [kind, model] of kinds) {
    if (!model.unique.includes('client_id')) continue
    const toView = `view_${model.resource}` as const
    app.post(
      `/consumers/${kind}/consents/`,
      {
        config: {
          permission: 'record_sign_in',
          document: { alsoNeeds: [{ permission: toView, when: 'for the clients, of some owners or of all' }] },
        },
        schema: {
          summary: 'Record consents of users',
          description: `A user, a client and the same permissions have one consent. At most ${atOnce} at once.`,
          body: consents,
          response: { 200: recorded },
        },
      },
      async ({ body: { consents: sent }, actor, id: requestId }) => {
        const values = [
          ...usersOf(sent),
          ...[sent.map((each) => each.client_id), sent.map((each) => each.permissions)],
          ...[sent.map((each) => each.expires), kind, ownersWith(actor, toView)],
        ]
        return record(db, actor, sent.length, async (tx) => {
          const [row] = await query(tx, consentRow, { text: consentsText, values })
          const changes = (row?.written ?? []).map((each): AuditedChange => ({ ...each, ...changeOf[each.action] }))
          if (changes.length > 0)
            await tx.auditRow.create({ data: auditRow({ actor, action: 'record_consents', changes, requestId }) })
          return row?.unknown
        })
      },
    )
  }

  app.patch(
    '/consumers/users/',
    {
      config: { permission: 'record_sign_in' },
      schema: {
        summary: 'Record when users logged in',
        description: `No audit row says so: \`last_login\` does. At most ${atOnce} at once.`,
        body: logins,
        response: { 200: recorded },
      },
    },
    async ({ body: { users: sent }, actor }) => {
      const values = [...usersOf(sent), sent.map(({ last_login }) => last_login)]
      return record(db, actor, sent.length, async (tx) => {
        const [row] = await query(tx, unknownRow, { text: loginsText, values })
        return row?.unknown
      })
    },
  )
}

const changeOf = {
  create: { model: 'service_core.userconsent', fields: ['user', 'application', 'permissions', 'expires', 'expiring'] },
  update: { model: 'service_core.userconsent', fields: ['expires', 'expiring'] },
} as const

/** @param write returns the indexes of what names nothing */
async function record(db: Db, actor: Actor, sent: number, write: (tx: Tx) => Promise<readonly number[] | undefined>) {
  if (stacksOf(actor) !== null)
    throw new Problem('permission_denied', 'The token is bound to stacks: it writes by documents only.')
  // A user or an application may be deleted meanwhile.
  const canRetry = (error: unknown) => isCollision(error) || brokenConstraint(error)?.kind === 'reference'
  try {
    const unknown = await retrying(() => transaction(db, write), { max: 5, stepMs: 5, canRetry })
    return { recorded: sent - (unknown?.length ?? 0), unknown: [...(unknown ?? [])] }
  } catch (error) {
    throw statementProblem(error)
  }
}
