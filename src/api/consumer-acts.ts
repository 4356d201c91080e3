import { z } from 'zod'
import { type AuditedChange, auditRow } from '../apply/audit.ts'
import { retrying } from '../db/backoff.ts'
import { type Db, type Tx, transaction } from '../db/client.ts'
import { brokenConstraint, isCollision, statementProblem } from '../db/errors.ts'
import { query, type Statement } from '../db/raw.ts'
import { withExample } from '../example.ts'
import { requireAccess } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import { dateTime, follow, int32, line, shownLine, shownOnly, text } from '../models/fields.ts'
import type { ProviderModel } from '../models/provider.ts'
import type { Registry } from '../models/registry.ts'
import { anyUrl } from '../models/urls.ts'
import { type Actor, ownersWith } from '../permissions.ts'
import { requireUnbound } from '../rights/actor.ts'

/**
 * PUT /api/v3/consumers/self/: where applications find a server that signs users in.
 * POST /api/v3/consumers/oauth2/consents/, PATCH /api/v3/consumers/users/: what such servers tell back. A request says
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

/** Two orders of the same words are one consent. */
const inOrder = (words: string) => [...new Set(words.split(' ').filter(Boolean))].sort().join(' ')

const consents = z
  .strictObject({
    consents: items(
      z.strictObject({
        user,
        client_id: withExample(line(255), 'grafana'),
        permissions: withExample(shownLine(500).overwrite(inOrder), 'email openid profile'),
        expires: dateTime().nullable().default(null).meta({ description: 'Null: it does not expire.' }),
      }),
    ),
  })
  .meta({ id: 'SentConsents' })

const logins = z
  .strictObject({
    logins: items(
      z.strictObject({
        user,
        last_login: dateTime().meta({
          description: 'An earlier one than is known changes nothing, and a later one than now is now.',
        }),
      }),
    ),
  })
  .meta({ id: 'SentLogins' })

/** What was sent, with the keys of its users, in SQL; `n` counts from 1. @param members of an item, with their types */
const sentItems = (members: string, columns: string) => `sent AS MATERIALIZED (
    SELECT s.n, CASE jsonb_typeof(s.who) WHEN 'string' THEN (SELECT pk FROM users WHERE username = s.who #>> '{}')
        ELSE (SELECT pk FROM users WHERE pk = s.who::integer) END AS user_pk, ${columns}
      FROM ROWS FROM (jsonb_to_recordset($1::jsonb) AS ("user" jsonb, ${members})) WITH ORDINALITY
        AS s (who, ${members.replaceAll(/ \w+(?=,|$)/g, '')}, n))`

const unknownIn = (condition: string) =>
  `ARRAY(SELECT n::integer - 1 FROM sent WHERE ${condition} ORDER BY n) AS unknown`

const change = z.object({ key: z.int(), action: z.enum(['create', 'update']) })
const row = z.object({ unknown: z.array(z.int()), written: z.array(change).nullable() })

/** Writes consents in the order of their keys: two requests never wait for each other. Of those of one key, the last counts. */
const consentsText = `WITH ${sentItems(
  'client_id text, permissions text, expires timestamptz',
  `permissions, expires, (SELECT a.pk FROM providers p JOIN applications a ON a.provider_pk = p.pk
        WHERE p.oauth2_client_id = s.client_id AND p.kind = $2 AND ($3::text[] IS NULL OR p.owner = ANY($3::text[]))) AS application_pk`,
)}, written AS (
    INSERT INTO user_consents (user_pk, application_pk, permissions, expires, expiring)
      SELECT DISTINCT ON (user_pk, application_pk, permissions) user_pk, application_pk, permissions, expires, expires IS NOT NULL
        FROM sent WHERE user_pk IS NOT NULL AND application_pk IS NOT NULL ORDER BY user_pk, application_pk, permissions, n DESC
      ON CONFLICT (user_pk, application_pk, permissions) DO UPDATE SET expires = excluded.expires, expiring = excluded.expiring
        WHERE (user_consents.expires, user_consents.expiring) IS DISTINCT FROM (excluded.expires, excluded.expiring)
      RETURNING pk, xmax = 0 AS is_new
  ) SELECT ${unknownIn('user_pk IS NULL OR application_pk IS NULL')}, (SELECT jsonb_agg(jsonb_build_object(
      'key', pk, 'action', CASE WHEN is_new THEN 'create' ELSE 'update' END) ORDER BY pk) FROM written) AS written`

/** Locks the users in the order of their keys. */
const loginsText = `WITH ${sentItems('last_login timestamptz', 'least(s.last_login, now()) AS at')}, newer AS MATERIALIZED (
    SELECT u.pk, s.at FROM (SELECT user_pk, max(at) AS at FROM sent GROUP BY user_pk) s JOIN users u ON u.pk = s.user_pk
      WHERE u.last_login IS NULL OR u.last_login < s.at ORDER BY u.pk FOR NO KEY UPDATE OF u
  ), written AS (
    UPDATE users u SET last_login = greatest(u.last_login, newer.at) FROM newer WHERE u.pk = newer.pk
  ) SELECT ${unknownIn('user_pk IS NULL')}, NULL::jsonb AS written`

const isOfClients = (model: ProviderModel) => model.unique.includes('client_id')

export function consumerActRoutes(app: Api, db: Db, { kinds }: Registry): void {
  const kind = z
    .enum([...kinds.keys()])
    .meta({ title: 'ProviderKind', description: 'Of the providers that it serves.' })
  const self = z
    .object({ issuer: withExample(follow(shownOnly, text(anyUrl)), 'https://id.example.com'), kind })
    .meta({ id: 'ConsumerSelf' })
  const usual = [...kinds].find(([, model]) => isOfClients(model))?.[0] ?? ''

  app.put(
    '/consumers/self/',
    {
      config: {
        permission: 'record_sign_in',
        document: {
          alsoNeeds: [...kinds].map(([kind, { resource }]) => ({
            permission: `view_${resource}`,
            when: `for ${kind}`,
          })),
        },
      },
      schema: {
        summary: 'Say where applications find this server',
        description: 'The user of the token has one issuer for each kind. `gatewright env` prints it.',
        body: z.strictObject({ ...self.shape, kind: kind.default(usual) }).meta({ id: 'SentConsumerSelf' }),
        response: { 200: self },
      },
    },
    async ({ body, actor, id: requestId }) => {
      const { pk: userPk } = requireUnbound(actor)
      const { issuer, kind } = body
      requireAccess(actor, `view_${kinds.get(kind)?.resource}`)
      await transaction(db, async (tx) => {
        const where = { userPk_kind: { userPk, kind } }
        if ((await tx.consumer.findUnique({ where }))?.issuer === issuer) return
        await tx.consumer.upsert({ where, create: { userPk, kind, issuer }, update: { issuer } })
        const change = { model: 'consumer', key: kind, action: 'update', fields: ['issuer'] } as const
        await tx.auditRow.create({ data: auditRow({ actor, action: 'set_issuer', changes: [change], requestId }) })
      })
      return body
    },
  )

  for (const [kind, model] of kinds) {
    if (!isOfClients(model)) continue
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
      async ({ body: { consents: sent }, actor, id }) =>
        record(db, actor, id, sent, { text: consentsText, values: [kind, ownersWith(actor, toView)] }),
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
    async ({ body: { logins: sent }, actor, id }) => record(db, actor, id, sent, { text: loginsText, values: [] }),
  )
}

const changeOf = {
  create: { model: 'service_core.userconsent', fields: ['user', 'application', 'permissions', 'expires', 'expiring'] },
  update: { model: 'service_core.userconsent', fields: ['expires', 'expiring'] },
} as const

/** @param statement its first value is what was sent */
async function record(db: Db, actor: Actor, requestId: string, sent: readonly object[], { text, values }: Statement) {
  requireUnbound(actor)
  const write = async (tx: Tx) => {
    const [found] = await query(tx, row, { text, values: [JSON.stringify(sent), ...values] })
    const { unknown = [], written } = found ?? {}
    const changes = (written ?? []).map((each): AuditedChange => ({ ...each, ...changeOf[each.action] }))
    if (changes.length > 0)
      await tx.auditRow.create({ data: auditRow({ actor, action: 'record_consents', changes, requestId }) })
    return { recorded: sent.length - unknown.length, unknown }
  }
  // A user or an application may be deleted meanwhile.
  const canRetry = (error: unknown) => isCollision(error) || brokenConstraint(error)?.kind === 'reference'
  try {
    return await retrying(() => transaction(db, write), { max: 5, stepMs: 5, canRetry })
  } catch (error) {
    throw statementProblem(error)
  }
}
