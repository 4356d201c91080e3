import { hash } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { type Db, type Tx, transaction } from '../db/client.ts'
import { openSnapshot } from '../db/snapshot.ts'
import { ErrorList } from '../errors.ts'
import { authenticateAgain } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import { etagHeaders, neverStored, sendTagged } from '../http/etag.ts'
import { answerOf, pageText } from '../http/long-answer.ts'
import type { Metrics } from '../http/metrics.ts'
import * as filter from '../lists/filters.ts'
import { readRows } from '../lists/list.ts'
import { pageSize, usualPageSize } from '../lists/page.ts'
import type { ProviderModel } from '../models/provider.ts'
import { type Actor, allowsSome, ownersShown, ownersWith, permissionOf, toReadSecrets } from '../permissions.ts'
import type { Engine } from '../plan/engine.ts'
import { consumerView } from '../views/consumer.ts'
import { readUidOf } from '../views/uid.ts'
import {
  type Asked,
  type Change,
  findConfigurations,
  mayConcern,
  mostChanges,
  recordRead,
} from '../waits/consumer-changes.ts'
import { longestRevision, parseRevision, textOf } from '../waits/revision.ts'
import { longestWait, type Waits } from '../waits/waits.ts'

/**
 * GET /api/v3/consumers/oauth2/, and of each other kind: configurations for the servers that sign users in
 * (docs/adr/0140-consumers-read-configurations.md).
 */

type Parts = {
  readonly db: Db
  readonly engine: Engine
  readonly waits: Waits
  readonly metrics: Pick<Metrics, 'consumerReads'>
}

export function consumerRoutes(app: Api, parts: Parts): void {
  for (const [kind, model] of parts.engine.registry.kinds) consumerRoute(app, kind, model, parts)
}

function consumerRoute(app: Api, kind: string, model: ProviderModel, { db, engine, waits, metrics }: Parts): void {
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
      200: z.object({ ...head, results: z.array(view.schema) }).meta({ id: `${view.schema.meta()?.id}Page` }),
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
        { permission: 'view_propertymapping' as const, when: 'to get expressions' },
        { permission: 'view_application' as const, when: 'to get the application' },
      ],
    },
  }

  for (const secrets of ['true', 'false']) metrics.consumerReads.inc({ kind, secrets }, 0)
  const opens = (actor: Actor) => allowsSome(actor, toReadSecrets(model.resource))

  /** @returns null when nothing of what has changed concerns the caller */
  async function read(request: FastifyRequest, reply: FastifyReply, revision: string, asked: Asked): Promise<Answer> {
    const { actor } = request
    const find = (wanted: Asked) => (tx: Tx) => findConfigurations(tx, { kind, permission, filters }, actor, wanted)
    if (asked.since !== undefined) {
      const { keys, gone, changed } = await transaction(db, find(asked))
      if (keys.length + gone.length === 0 && changed <= mostChanges) return null
    }
    // A request that waited takes its share only now: it may have waited for others.
    if (Object.hasOwn(request.query as object, 'wait')) await request.takeShare(reply)
    // It is read before the transaction, which must not wait for another connection.
    const reading = { uidOf: await readUidOf(db), related: true, actor }
    const snapshot = openSnapshot(db, { plans: 'auto' })
    async function* page(): AsyncIterable<string> {
      let [wanted, found] = [asked, await snapshot.read(find(asked))]
      if (wanted.since !== undefined && Math.max(found.changed, found.gone.length) > mostChanges) {
        wanted = { sent: {}, after: 0, size: usualPageSize }
        found = await snapshot.read(find(wanted))
      }
      const keys = found.keys.slice(0, wanted.size)
      const next = found.keys.length > keys.length ? (keys.at(-1) ?? 0) : 0
      const deleted = found.gone.map((pk) => ({ pk }))
      const members = { revision, reset: wanted.since === undefined, deleted, next }
      yield* pageText(snapshot, members, readRows(snapshot, db, { view, keys, reading }))
    }
    return answerOf(reply, snapshot, page())
  }

  app.get(`/consumers/${kind}/`, { config, schema }, async (request, reply) => {
    const { since, wait = 0, after, page_size, ...sent } = request.query as Query
    refuseBeside(since, Object.keys(sent), after)
    const until = performance.now() + (request.method === 'HEAD' ? 0 : wait * 1_000)
    const revisionBefore = since === undefined ? undefined : parseRevision(since)
    await recordRead(db, request, { kind, opens: opens(request.actor), snapshot: revisionBefore?.snapshot })
    for (let known = revisionBefore; ; ) {
      const owners = ownersWith(request.actor, permission)
      const concerns = (change: Change) =>
        change.kind === null ||
        (change.kind === kind && (owners === null || change.owners.some((owner) => owners.includes(owner))))
      const standing = await waits.changes(request, known?.snapshot ?? null)
      const digest = digestOf(request.actor, [permission, toReadSecrets(model.resource)], [kind, standing.server])
      const revision = textOf({ snapshot: standing.snapshot, digest })
      const isFollowed = known?.digest === digest && standing.isKnown
      if (!isFollowed || mayConcern(standing, concerns)) {
        const whole = { sent, after, size: page_size }
        const changes = { sent: {}, after: 0, size: mostChanges, since: known?.snapshot }
        const text = await read(request, reply, revision, isFollowed ? changes : whole)
        if (text !== null) {
          metrics.consumerReads.inc({ kind, secrets: String(opens(request.actor)) })
          const headers = { ...neverStored.headers, 'gatewright-revision': revision }
          return sendTagged(reply, text, 'page', { ...neverStored, headers, tagged: withoutRevision })
        }
      }
      known = { snapshot: standing.snapshot, digest }
      const left = (until - performance.now()) / 1_000
      const unchanged = () => reply.code(204).header('gatewright-revision', revision).send(null)
      if (left <= 0) return unchanged()
      // The rights are read after their digest: what changes in between ends the wait.
      await authenticateAgain(db, request)
      const isChanged = await waits.untilConsumersChanged(request, reply, { standing, concerns }, left)
      if (!isChanged) return unchanged()
      await authenticateAgain(db, request)
    }
  })
}

type Answer = string | Readable | null

/** What an answer says of objects: it stays the same when others change. */
const withoutRevision = (text: string): string => text.replace(/^\{"revision":"[^"]*",/, '{')

const parameters = {
  after: filter
    .queryInteger(0, 2_147_483_647)
    .default(0)
    .meta({ description: 'Configurations with a larger `pk` alone: `next` of the page before.' }),
  page_size: pageSize('How many results a page has.'),
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
  deleted: z
    .array(z.object({ pk: z.int() }).meta({ id: 'ConsumedKey' }))
    .meta({ description: 'What was deleted, or may not be read any more.' }),
  next: z.int().meta({ description: 'Send it as `after` for the next page; 0: there is none.' }),
}

/** Changes are those of all configurations: a filter would not say what leaves it. @throws {Problem} */
function refuseBeside(since: string | undefined, names: readonly string[], after: number): void {
  const errors = new ErrorList()
  for (const name of since === undefined ? [] : [...names, ...(after > 0 ? ['after'] : [])])
    errors.of('parameter').add([name], 'invalid_combination', 'It does not go with since.')
  if (errors.any) throw errors.problem()
}

/** A caller with other rights, and one of another database, has to read all anew. */
function digestOf(actor: Actor, needed: readonly string[], place: readonly string[]): string {
  const names = [...needed, toReadSecrets('certificatekeypair'), 'view_propertymapping', 'view_application']
  const rights = [actor, actor.impersonator].map((each) => [
    each?.isSuperuser,
    each && ownersShown(each),
    [...(each?.permissions ?? [])].filter((right) => names.includes(permissionOf(right))).sort(),
  ])
  return hash('sha256', JSON.stringify([rights, place]), 'base64url').slice(0, 11)
}
