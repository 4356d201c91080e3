import { hash } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { auditValues } from '../apply/audit.ts'
import { type Db, type Tx, transaction } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { execute, query, unprepared, Values } from '../db/raw.ts'
import { openSnapshot } from '../db/snapshot.ts'
import { ErrorList } from '../errors.ts'
import { authenticateAgain } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import { etagHeaders, neverStored, sendTagged } from '../http/etag.ts'
import { answerOf, pageText } from '../http/long-answer.ts'
import { conditionsOf, ofKinds } from '../lists/conditions.ts'
import * as filter from '../lists/filters.ts'
import { readRows } from '../lists/list.ts'
import { usualPageSize } from '../lists/listed.ts'
import { maxPageSize } from '../lists/page.ts'
import type { ProviderModel } from '../models/provider.ts'
import { type Actor, ownersWith, permissionOf, toReadSecrets } from '../permissions.ts'
import type { Engine } from '../plan/engine.ts'
import { consumerView } from '../views/consumer.ts'
import { readUidOf } from '../views/uid.ts'
import { type Change, changedSince, mayConcern, mostChanges } from '../waits/consumer-changes.ts'
import { longestRevision, parseRevision, type Revision, textOf } from '../waits/revision.ts'
import { longestWait, type Waits } from '../waits/waits.ts'

/**
 * GET /api/v3/consumers/oauth2/, and of each other kind: configurations for the servers that sign users in
 * (docs/adr/0140-consumers-read-configurations.md).
 */

type Parts = { readonly db: Db; readonly engine: Engine; readonly waits: Waits }

export function consumerRoutes(app: Api, parts: Parts): void {
  for (const [kind, model] of parts.engine.registry.kinds) consumerRoute(app, kind, model, parts)
}

function consumerRoute(app: Api, kind: string, model: ProviderModel, { db, engine, waits }: Parts): void {
  const permission = `view_${model.resource}` as const
  const view = consumerView(model, engine.keyring)
  const filters: Readonly<Record<string, filter.Filter>> = {
    pk: filter.isOneOfKeys('pk', 'integer'),
    name: filter.unique('name'),
    ...(model.unique.includes('client_id') && { client_id: filter.unique('oauth2ClientId') }),
    ...Object.fromEntries(
      filter.settingsKeys.filter((name) => model.fields.has(name)).map((name) => [name, filter.hasSettingsKey(name)]),
    ),
  }
  const schema = {
    summary: `Read configurations of the kind ${kind}`,
    description: `For the servers that sign users in. Secrets are shown to callers with \`${toReadSecrets(model.resource)}\`, and private keys to those with \`${toReadSecrets('certificatekeypair')}\`.`,
    querystring: z.strictObject({
      ...Object.fromEntries(Object.entries(filters).map(([name, each]) => [name, each.schema.optional()])),
      ...parameters,
    }),
    response: {
      200: z
        .object({ ...head, results: z.array(view.schema) })
        .meta({ id: `Consumed${view.schema.meta()?.id?.replace(/^Consumed/, '')}Page` }),
      204: z.null(),
      304: z.null(),
    },
  }
  const config = {
    permission,
    secret: true as const,
    countedAs: 'consumer ',
    takes: 'list' as const,
    laterBy: 'wait',
    exceptBy: Object.keys(filters).filter((name) => name !== 'pk'),
    document: {
      headers: etagHeaders,
      answerHeaders: ['ETag', 'Vary', 'Gatewright-Revision'],
      codes: ['precondition_failed', 'unavailable'] as const,
      alsoNeeds: [
        { permission: toReadSecrets(model.resource), when: 'to get secrets' },
        { permission: toReadSecrets('certificatekeypair'), when: 'to get private keys' },
      ],
    },
  }

  const find = (tx: Tx, actor: Actor, { sent, after, size, since }: Asked) => {
    const values = new Values()
    const narrowed = Object.entries(filters)
      .filter(([name]) => sent[name] !== undefined)
      .map(([name, each]) => ({ name, filter: each, value: sent[name] }))
    const spec = { view, search: '', seen: ofKinds({ [kind]: permission }) }
    const shown = ['true', ...conditionsOf(spec, { actor, filters: narrowed }, values.bind)].join(' AND ')
    const ofKind = `kind = ${values.bind(kind)}`
    const [owners, from] = [values.bind(ownersWith(actor, permission)), values.bind(since ?? null)]
    const isChanged = since === undefined ? 'true' : 'providers.pk IN (SELECT pk FROM changed_providers)'
    return query(tx, foundRow, {
      ...unprepared({
        text: `WITH since AS MATERIALIZED (SELECT ${from}::text::pg_snapshot AS at), changed AS MATERIALIZED (${changedSince}),
            changed_providers AS MATERIALIZED (${providersOfChanges} LIMIT ${mostChanges + 1})
          SELECT ARRAY(SELECT pk FROM providers WHERE ${ofKind} AND ${shown} AND ${isChanged} AND pk > ${values.bind(after)}
              ORDER BY pk LIMIT ${values.bind(size + 1)}) AS keys,
            ARRAY(SELECT key::integer FROM changed WHERE source = 'provider' AND ${ofKind}
                AND (${owners}::text[] IS NULL OR owners && ${owners}::text[])
                AND NOT EXISTS (SELECT FROM providers WHERE pk = key::integer AND ${shown})
              ORDER BY 1 LIMIT ${mostChanges + 1}) AS gone,
            (SELECT count(*)::integer FROM changed_providers) AS changed`,
        values: values.list,
      }),
    }).then(([found = { keys: [], gone: [], changed: 0 }]) => found)
  }

  /** @returns null when nothing of what has changed concerns the caller */
  async function read(request: FastifyRequest, reply: FastifyReply, revision: string, asked: Asked): Promise<Answer> {
    const { actor } = request
    const found = await transaction(db, (tx) => find(tx, actor, asked), { isolationLevel: 'RepeatableRead' })
    const isReset = asked.since === undefined
    if (!isReset && Math.max(found.changed, found.gone.length) > mostChanges)
      return read(request, reply, revision, { sent: {}, after: 0, size: usualPageSize })
    if (!isReset && found.keys.length + found.gone.length === 0) return null
    if (Object.hasOwn(request.query as object, 'wait')) await request.takeShare(reply)
    const keys = found.keys.slice(0, asked.size)
    const next = found.keys.length > keys.length ? (keys.at(-1) ?? 0) : 0
    const members = { revision, reset: isReset, deleted: found.gone.map((pk) => ({ pk })), next }
    const snapshot = openSnapshot(db, { plans: 'auto' })
    const reading = { uidOf: await readUidOf(db), related: true, actor }
    return answerOf(reply, snapshot, pageText(snapshot, members, readRows(snapshot, db, { view, keys, reading })))
  }

  app.get(`/consumers/${kind}/`, { config, schema }, async (request, reply) => {
    const { since, wait = 0, after, page_size, ...sent } = request.query as Query
    refuseBeside(since, Object.keys(sent), after)
    const until = performance.now() + (request.method === 'HEAD' ? 0 : wait * 1_000)
    const revisionBefore = since === undefined ? undefined : parseRevision(since)
    await recordRead(db, request, kind, revisionBefore)
    for (let known = revisionBefore; ; ) {
      const owners = ownersWith(request.actor, permission)
      const concerns = (change: Change) =>
        change.source !== 'provider' ||
        (change.kind === kind && (owners === null || change.owners.some((owner) => owners.includes(owner))))
      const standing = await waits.changes(request, known?.snapshot ?? null)
      const digest = digestOf(request.actor, [permission, toReadSecrets(model.resource)], [kind, standing.server])
      const revision = textOf({ snapshot: standing.snapshot, digest })
      reply.header('Gatewright-Revision', revision)
      const isFollowed = known?.digest === digest && standing.isKnown
      if (!isFollowed || mayConcern(standing, concerns)) {
        const whole = { sent, after, size: page_size }
        const changes = { sent: {}, after: 0, size: mostChanges, since: known?.snapshot }
        const text = await read(request, reply, revision, isFollowed ? changes : whole)
        if (text !== null) return sendTagged(reply, text, 'page', neverStored)
      }
      known = { snapshot: standing.snapshot, digest }
      const left = (until - performance.now()) / 1_000
      if (left <= 0) return reply.code(204).send(null)
      // The rights are read after their digest: what changes in between ends the wait.
      await authenticateAgain(db, request)
      await waits.untilConsumersChanged(request, reply, { standing, concerns }, left)
      await authenticateAgain(db, request)
    }
  })
}

type Answer = string | Readable | null

/** @property sent filters by their names @property after the key behind which the page begins @property since a snapshot */
type Asked = {
  readonly sent: Readonly<Record<string, unknown>>
  readonly after: number
  readonly size: number
  readonly since?: string | undefined
}

const parameters = {
  after: filter
    .queryInteger(0, 2_147_483_647)
    .default(0)
    .meta({ description: 'Configurations with a larger `pk` alone: `next` of the page before.' }),
  page_size: filter
    .queryInteger(1, maxPageSize)
    .default(usualPageSize)
    .meta({ description: 'How many results a page has.' }),
  since: filter
    .queryText(longestRevision)
    .refine((text) => parseRevision(text) !== undefined, 'Must be a `revision` of an answer.')
    .optional()
    .meta({
      description: `The \`revision\` that the client has: the answer is what changed since then. With \`wait=N\`, it comes when there is something, and is a 204 after N seconds, at most ${longestWait}. \`wait\` is no parameter of this description: a client in Java cannot have a method of that name.`,
    }),
  wait: filter.queryInteger(0, longestWait).optional().meta({ 'x-internal': true }),
}
const ownParameters = z.object(parameters)
type Query = z.output<typeof ownParameters> & Asked['sent']

const head = {
  revision: z.string().meta({
    description: 'Send it as `since` for what changes from now on. Of several pages, that of the first one.',
  }),
  reset: z.boolean().meta({
    description: 'True: this is a page of the whole, so forget what you have. False: this is what changed.',
  }),
  deleted: z.array(z.object({ pk: z.int() })).meta({ description: 'What was deleted, or may not be read any more.' }),
  next: z.int().meta({ description: 'Send it as `after` for the next page; 0: there is none.' }),
}

const foundRow = z.object({ keys: z.array(z.int()), gone: z.array(z.int()), changed: z.int() })

/** The providers that a change concerns, in SQL: those that changed, and those that refer to what changed. */
const providersOfChanges = `SELECT DISTINCT pk FROM (
    SELECT key::integer AS pk FROM changed WHERE source = 'provider'
    UNION ALL SELECT p.pk FROM changed c, LATERAL (SELECT pk FROM providers
      WHERE c.key::uuid IN (authentication_flow, authorization_flow, invalidation_flow) OFFSET 0) p WHERE c.source = 'flow'
    UNION ALL SELECT r.pk FROM changed c, LATERAL (SELECT provider_pk AS pk FROM provider_references
      WHERE c.key::uuid IN (flow_pk, property_mapping_pk, certificate_key_pair_pk) OFFSET 0) r WHERE c.source <> 'provider') touched`

/** Changes are those of all configurations: a filter would not say what leaves it. @throws {Problem} */
function refuseBeside(since: string | undefined, names: readonly string[], after: number): void {
  const errors = new ErrorList()
  for (const name of since === undefined ? [] : [...names, ...(after > 0 ? ['after'] : [])])
    errors.of('parameter').add([name], 'invalid_combination', 'It does not go with since.')
  if (errors.any) throw errors.problem()
}

/** A caller with other rights, and one of another database, has to read all anew. */
function digestOf({ isSuperuser, permissions }: Actor, needed: readonly string[], place: readonly string[]): string {
  const names = [...needed, toReadSecrets('certificatekeypair')]
  const rights = [...permissions].filter((right) => names.includes(permissionOf(right))).sort()
  return hash('sha256', JSON.stringify([isSuperuser, rights, place]), 'base64url').slice(0, 11)
}

/** Records when a consumer last read, and what it has; with an audit row for the first read of each day (UTC). */
async function recordRead(db: Db, request: FastifyRequest, kind: string, known: Revision | undefined): Promise<void> {
  const { actor, id } = request
  const changes = [{ model: 'consumer', key: kind, action: 'read', fields: [] }] as const
  const row = auditValues({ actor, action: 'read_configurations', changes, requestId: id })
  const read = execute(db, {
    text: `WITH noted AS (
        INSERT INTO consumers AS c (user_pk, kind, revision, seen_at, day, reads)
        VALUES ($10::integer, $11, $12::text, now(), (now() AT TIME ZONE 'UTC')::date, 1)
        ON CONFLICT (user_pk, kind) DO UPDATE SET revision = coalesce(excluded.revision, c.revision), seen_at = now(),
          day = excluded.day, reads = CASE WHEN c.day = excluded.day THEN c.reads + 1 ELSE 1 END
        WHERE c.seen_at IS NULL OR c.seen_at < now() - interval '1 second' OR c.revision IS DISTINCT FROM coalesce(excluded.revision, c.revision)
        RETURNING reads)
      INSERT INTO audit_rows (${row.columns}) SELECT $1::integer, $2, $3::integer, $4, $5, $6::jsonb, $7::text[], $8, $9::uuid
        FROM noted WHERE reads = 1`,
    values: [...row.values, actor.pk, kind, known?.snapshot ?? null],
  })
  await inTime(read)
}
