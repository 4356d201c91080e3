import { createPrivateKey } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { expect, inject, test } from 'vitest'
import { z } from 'zod'
import { randomText } from '../../src/ids.ts'
import { permissionNames } from '../../src/models/registry.ts'
import { selfSigned } from '../../src/models/self-signed.ts'
import { pairs } from '../support/key-pairs.ts'
import {
  type Answer,
  aKeyPair,
  answered,
  applied,
  applyPath,
  dashboardOf,
  everything,
  execute,
  installation,
  kinds,
  type Made,
  named,
  raw,
  rows,
  sql,
} from '../support/kit.ts'
import { everything as allRights, boundTo, has, limited, type Rights } from './oracle.ts'

/**
 * Callers with random roles, owners and tokens read all that can be read. Each secret has a text that is nowhere else. The routes
 * for consumers answer those that the caller may read, and all of these; no other answer, log line or table has any. The rights
 * are computed here, and not by the product.
 */

const routes = new Set<string>()
subscribe('fastify.initialization', (message) => {
  const { fastify } = message as { fastify: FastifyInstance }
  fastify.addHook('onRoute', ({ method, url }) => {
    if ([method].flat().includes('GET')) routes.add(url)
  })
})

const there = await installation()
const { db, engine, make, admin } = there
const dashboard = dashboardOf(there)
const labels = [null, 'team-one', 'team-two'] as const
type Label = (typeof labels)[number]

/** The text of a secret, and where it is: in a provider, or in a key pair. `isValid`: a consumer may get it. */
type Marker = { readonly text: string; readonly isValid: boolean } & (
  | { readonly provider: string }
  | { readonly pair: string }
)
type Provider = {
  pk: number
  readonly name: string
  readonly kind: string
  owner: Label
  /** The owner of its application. */
  ofApplication: Label
  readonly pairs: readonly string[]
}
let markers: Marker[] = []
const providers: Provider[] = []

const ofPairs: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ldap: { certificate: 'pair-ec' },
  proxy: { certificate: 'pair-ed25519' },
  oauth2: { signing_key: 'pair-rsa' },
  saml: { signing_kp: 'pair-rsa', encryption_kp: 'pair-rsa' },
}

async function insertPairs(): Promise<void> {
  const { certificate, key } = await selfSigned('secrets.example')
  const all = { rsa: { certificate_data: certificate, key_data: key }, ...pairs }
  await applied(admin.apply(Object.entries(all).map(([type, attrs]) => aKeyPair(`pair-${type}`, attrs))))
  for (const [type, { key_data }] of Object.entries(all)) {
    const jwk = createPrivateKey(key_data).export({ format: 'jwk' })
    const parts = [jwk.d, jwk.p, jwk.q, jwk.dp, jwk.dq, jwk.qi].filter((part) => part !== undefined)
    for (const text of parts) markers.push({ text, isValid: true, pair: `pair-${type}` })
    // The lines of its text, too: some of them may be those of a part.
    for (const text of key_data.split('\n').filter((line) => /^[\w+/=]{40,}$/.test(line)))
      if (!parts.some((part) => part.includes(text))) markers.push({ text, isValid: false, pair: `pair-${type}` })
  }
}

const fieldsOf = (kind: string) =>
  [...(engine.registry.kinds.get(kind)?.fields.values() ?? [])].filter(({ secret }) => secret)
const isRotated = (kind: string) => fieldsOf(kind).some(({ overlap }) => overlap)

/** Gives a provider other secrets. @param overlap for which those before stay valid, where the kind has that */
async function write(of: Provider, overlap?: string): Promise<void> {
  const { name, kind, owner } = of
  const before = markers.filter((each) => 'provider' in each && each.provider === name && each.isValid)
  const last = before.map(({ text }) => text).at(-1)
  // Of two that are valid, the older one ends.
  const staying = overlap !== undefined && isRotated(kind) ? last : undefined
  markers = markers.map((each) => (before.includes(each) ? { ...each, isValid: each.text === staying } : each))
  const sent = fieldsOf(kind).map((field) => {
    const text = `marker${randomText(30)}`
    markers.push({ text, isValid: true, provider: name })
    const value = field.schema.safeParse(text).success ? text : { deep: [{ inside: text }] }
    return [field.name, overlap !== undefined && field.overlap ? { value, overlap } : value]
  })
  const provider = { ...ofPairs[kind], ...Object.fromEntries(sent) }
  const options = { allow: 'takeover', ...(owner !== null && { owner }) }
  await applied(admin.put(applyPath, await named(kind, name, { provider }), options))
  const [app] = await rows<{ owner: Label }>(db, sql`SELECT owner FROM applications WHERE slug = ${name}`)
  of.ofApplication = app?.owner ?? null
}

/** A provider whose secrets were replaced: at once, with an overlap, and with one that has ended. */
async function insertProvider(kind: string, owner: Label): Promise<void> {
  const name = `${kind}-${owner ?? 'none'}`
  const provider = { pk: 0, name, kind, owner, ofApplication: owner, pairs: Object.values(ofPairs[kind] ?? {}) }
  providers.push(provider)
  await write(provider)
  await write(provider)
  await write(provider, 'hours=1')
  if (owner !== 'team-two' || !isRotated(kind)) return
  await execute(
    db,
    sql`UPDATE providers SET settings = jsonb_set(settings, '{previous_client_secret_expires}', '"2026-01-01T00:00:00Z"')
      WHERE name = ${name}`,
  )
  const [, former] = markers.filter((each) => 'provider' in each && each.provider === name)
  markers = markers.map((each) => (each === former ? { ...each, isValid: false } : each))
}

await insertPairs()
for (const kind of kinds) for (const owner of labels) await insertProvider(kind, owner)
for (const { pk, name } of await rows<{ pk: number; name: string }>(db, sql`SELECT pk, name FROM providers`))
  for (const provider of providers) if (provider.name === name) provider.pk = pk

const secretsOf = (provider: Provider) =>
  markers.filter((each) => 'provider' in each && each.provider === provider.name)
const keysOf = (pair: string) => markers.filter((each) => 'pair' in each && each.pair === pair)

const all = permissionNames(engine.registry)
const ofKinds = kinds.flatMap((kind) => [`view_${kind}provider`, `read_${kind}provider_secrets`])
const useful = [
  ...ofKinds,
  'read_certificatekeypair_secrets',
  'view_application',
  'view_run',
  'view_audit',
  'view_queue',
]

/** Most callers have most rights to view and to read secrets, for some owners. */
const role = fc.record({
  permissions: fc.oneof(
    fc.subarray(useful, { minLength: 6 }),
    fc.subarray(all.filter((each) => !each.startsWith('read_'))),
    fc.subarray([...all]),
  ),
  owners: fc.subarray(['team-one', 'team-two']),
})
const person = fc.record({
  roles: fc.array(role, { minLength: 1, maxLength: 3 }),
  isSuperuser: fc.nat(7).map((die) => die === 0),
})
const drawn = fc.record({
  ...{ real: person, effective: person },
  token: fc.oneof(
    fc.constant({ is: 'whole' } as const),
    fc.record({ is: fc.constant('below' as const), ...{ ceiling: role } }),
    fc.record({ is: fc.constant('owners' as const), owners: fc.subarray(['team-one', 'team-two'], { minLength: 1 }) }),
    fc.constant({ is: 'impersonates' } as const),
  ),
  die: fc.nat(9_999),
})
type Drawn = typeof drawn extends fc.Arbitrary<infer Value> ? Value : never

/** What a caller holds: all of these sets have to allow the reading of a secret, and the first one decides about the rest. */
type Caller = { get(path: string): Promise<Answer>; readonly token: string; held(): readonly Rights[] }
type Person = {
  readonly roles: { permissions: readonly string[]; readonly owners: readonly string[] }[]
  readonly isSuperuser: boolean
}

const rightsOf = ({ roles, isSuperuser }: Person): Rights =>
  isSuperuser ? new Set([allRights]) : new Set(roles.flatMap(({ permissions, owners }) => boundTo(permissions, owners)))

/** @returns with how to take a permission from all of its roles */
async function userOf({ roles, isSuperuser }: Person): Promise<Made & { take(permission: string): Promise<void> }> {
  const made = await Promise.all(roles.map(({ permissions, owners }) => make.role([...permissions], [...owners])))
  const group = await make.group({ roles: made.map(({ pk }) => pk), superuser: isSuperuser })
  const take = async (permission: string) => {
    for (const each of roles) each.permissions = each.permissions.filter((held) => held !== permission)
    const keys = made.map(({ pk }) => pk)
    await execute(
      db,
      sql`UPDATE roles SET permissions = array_remove(permissions, ${permission}) WHERE pk = ANY(${keys}::uuid[])`,
    )
  }
  return { ...(await make.user({ groups: [group.pk] })), take }
}

type Taking = Caller & { take(permission: string): Promise<void> }

async function callerOf({ real, effective: sent, token }: Drawn): Promise<Taking> {
  const user = await userOf(real)
  const { token: whole, take } = user
  switch (token.is) {
    case 'whole':
      return { get: user.get, token: whole, take, held: () => [rightsOf(real)] }
    case 'below': {
      const ceiling = boundTo(token.ceiling.permissions, token.ceiling.owners)
      const secret = await make.token(user.pk, { ceiling })
      return { get: there.as(secret).get, token: secret, take, held: () => [limited(rightsOf(real), new Set(ceiling))] }
    }
    case 'owners': {
      const path = '/api/v3/core/tokens/'
      const identifier = randomText(20)
      await answered(201, user.post(path, { identifier, owners: token.owners }))
      const { key } = (await answered(200, user.get(`${path}${identifier}/view_key/`))).json as { key: string }
      const ceiling = new Set(boundTo(all, token.owners))
      return { get: there.as(key).get, token: key, take, held: () => [limited(rightsOf(real), ceiling)] }
    }
    case 'impersonates': {
      const effective = { ...sent, isSuperuser: false }
      const other = await userOf(effective)
      const permitted = await make.role(['impersonate'])
      await make.group({ roles: [permitted.pk], users: [user.pk] })
      const headers = { 'impersonate-user': other.username }
      const get: Caller['get'] = (path) => user.get(path, { headers })
      return { get, token: whole, take, held: () => [rightsOf(effective), rightsOf(real)] }
    }
    default:
      return token satisfies never
  }
}

const holds = (rights: Rights, permission: string, owner: Label): boolean =>
  rights.has(allRights) || has(rights, owner === null ? permission : `${permission}@${owner}`)

const mayView = (caller: Caller, { kind, owner }: Provider): boolean => {
  const [rights] = caller.held()
  return rights !== undefined && holds(rights, `view_${kind}provider`, owner)
}

/** The texts that the configuration of a provider has for a caller. */
function expected(caller: Caller, provider: Provider): string[] {
  const { kind, owner } = provider
  if (!mayView(caller, provider)) return []
  const may = (permission: string, of: Label) => caller.held().every((rights) => holds(rights, permission, of))
  const own = may(`read_${kind}provider_secrets`, owner) ? secretsOf(provider) : []
  const ofPair = may('read_certificatekeypair_secrets', null) ? provider.pairs.flatMap(keysOf) : []
  return sorted([...own, ...ofPair].filter(({ isValid }) => isValid).map(({ text }) => text))
}

const sorted = (texts: Iterable<string>) => [...new Set(texts)].sort()
const textsIn = (text: string): string[] =>
  sorted(markers.map((each) => each.text).filter((each) => text.includes(each)))
const isSame = (one: readonly string[], other: readonly string[]) => one.join() === other.join()

const count = { secrets: 0, hidden: 0, answers: 0, refused: 0, followed: 0, reset: 0, gone: 0 }

const page = z.object({
  ...{ revision: z.string(), reset: z.boolean(), next: z.int() },
  results: z.array(z.looseObject({ pk: z.int() })),
  deleted: z.array(z.object({ pk: z.int() })),
})

const slug = z.object({ slug: z.string() }).nullable()
const applications = z.object({ application: slug, backchannel_application: slug })

/** A caller with any right for some owners alone sees applications of owners for which it may view them. */
function mayKnowApplication(caller: Caller, { ofApplication }: Provider): boolean {
  const [rights = new Set<string>()] = caller.held()
  return ![...rights].some((right) => right.includes('@')) || holds(rights, 'view_application', ofApplication)
}

/** What a consumer of a kind has, by key: the texts of configurations. */
type Kept = { revision: string; readonly known: Map<number, string> }

/** What is wrong with what a consumer of a kind has. */
function judgeKept(caller: Caller, kind: string, known: Kept['known']): string[] {
  const visible = providers.filter((each) => each.kind === kind && mayView(caller, each))
  const shown = visible.filter((each) => known.has(each.pk))
  const faults = visible.length === known.size && shown.length === known.size ? [] : [`${kind}: other providers`]
  for (const provider of shown) {
    const own = expected(caller, provider)
    const text = known.get(provider.pk) ?? ''
    if (!isSame(textsIn(text), own)) faults.push(`${provider.name}: other secrets`)
    const { application: front, backchannel_application: behind } = applications.parse(JSON.parse(text))
    if ([front, behind].some((each) => each?.slug === provider.name) !== mayKnowApplication(caller, provider))
      faults.push(`${provider.name}: its application`)
    count.secrets += own.length
    count.hidden += secretsOf(provider).length + provider.pairs.flatMap(keysOf).length - own.length
  }
  return faults
}

const pathOf = (kind: string) => `/api/v3/consumers/${kind}/`
const mayViewAny = (caller: Caller, kind: string): boolean =>
  [...(caller.held()[0] ?? [])].some((right) => right === allRights || right.split('@')[0] === `view_${kind}provider`)

/** What is wrong with what the routes for consumers answer. @param kept gets what the caller has then */
async function judgeConsumers(caller: Caller, kept = new Map<string, Kept>()): Promise<string[]> {
  const faults: string[] = []
  for (const kind of kinds) {
    const { status, json, text } = await caller.get(`${pathOf(kind)}?page_size=100`)
    if (status !== (mayViewAny(caller, kind) ? 200 : 403)) faults.push(`${kind}: ${status}`)
    const ofKind = providers.filter((each) => each.kind === kind)
    if (status === 200) {
      const { revision, results } = page.parse(json)
      const known = new Map(results.map((each) => [each.pk, JSON.stringify(each)]))
      kept.set(kind, { revision, known })
      faults.push(...judgeKept(caller, kind, known))
    }
    if (!isSame(textsIn(text), sorted(ofKind.flatMap((each) => expected(caller, each)))))
      faults.push(`${kind}: secrets`)
    for (const provider of ofKind) {
      const one = await caller.get(`${pathOf(kind)}?name=${provider.name}`)
      if (!isSame(textsIn(one.text), expected(caller, provider))) faults.push(`${provider.name} by name`)
    }
  }
  return faults
}

/** What is wrong with what a consumer has that follows the changes. */
async function judgeFollowing(caller: Caller, kept: Map<string, Kept>): Promise<string[]> {
  const faults: string[] = []
  for (const [kind, each] of kept) {
    const { status, json, text } = await caller.get(`${pathOf(kind)}?since=${encodeURIComponent(each.revision)}`)
    if (!mayViewAny(caller, kind)) {
      if (status !== 403) faults.push(`${kind} is followed: ${status}`)
      kept.delete(kind)
      continue
    }
    if (status === 200) {
      const { revision, reset, results, deleted } = page.parse(json)
      if (reset) each.known.clear()
      for (const { pk } of deleted) each.known.delete(pk)
      for (const result of results) each.known.set(result.pk, JSON.stringify(result))
      each.revision = revision
      count[reset ? 'reset' : 'followed'] += 1
      count.gone += deleted.length
      if (!isSame(textsIn(text), textsIn(JSON.stringify(results))))
        faults.push(`${kind} has secrets beside its results`)
    }
    faults.push(...judgeKept(caller, kind, each.known).map((fault) => `${fault}, followed (${status})`))
  }
  return faults
}

type Pick = <Item>(from: readonly Item[]) => Item

const changes = ['secret', 'overlap', 'owner', 'right', 'owner', 'application', 'owner'] as const

/** Changes a provider, or takes a right from the caller. */
async function change(caller: Taking, what: (typeof changes)[number], pick: Pick): Promise<string> {
  const provider = pick(providers)
  const { name, kind } = provider
  switch (what) {
    case 'secret':
      await write(provider)
      return `other secrets of ${name}`
    case 'overlap':
      await write(provider, 'hours=1')
      return `other secrets of ${name}, with an overlap`
    case 'owner': {
      const owner = pick(labels)
      await execute(db, sql`UPDATE providers SET owner = ${owner} WHERE name = ${name}`)
      provider.owner = owner
      return `${name} is of ${owner}`
    }
    case 'application': {
      const owner = pick(labels)
      await execute(db, sql`UPDATE applications SET owner = ${owner} WHERE slug = ${name}`)
      provider.ofApplication = owner
      return `the application of ${name} is of ${owner}`
    }
    case 'right': {
      const permission = pick([
        `read_${kind}provider_secrets`,
        `view_${kind}provider`,
        ...['read_certificatekeypair_secrets', 'view_application'],
      ])
      await caller.take(permission)
      return `without ${permission}`
    }
  }
}

/** Addresses of all other reads, with objects in place of their parameters. */
async function otherReads(pick: Pick): Promise<string[]> {
  const some = async (table: string, column: string) => {
    const found = await rows<{ it: string }>(
      db,
      sql`SELECT ${raw(column)}::text AS it FROM ${raw(table)} ORDER BY 1 DESC LIMIT 50`,
    )
    return found.map(({ it }) => it)
  }
  const [runs, tokens] = [await some('runs', 'id'), await some('tokens', 'identifier')]
  const [groups, flows] = [await some('groups', 'pk'), await some('flows', 'slug')]
  const namesFor = (url: string): string[] => {
    const kind = /providers\/(\w+)\/:name/.exec(url)?.[1]
    if (kind !== undefined) return providers.filter((each) => [each.kind, 'all'].includes(kind)).map(({ name }) => name)
    if (url.includes('certificatekeypairs')) return Object.keys(pairs).map((type) => `pair-${type}`)
    if (url.includes('flows')) return [pick(flows)]
    if (url.includes(':slug')) return Array.from({ length: 5 }, () => pick(providers).name)
    if (url.includes(':id')) return [pick(runs), pick(runs), pick(runs)]
    if (url.includes(':identifier')) return [pick(tokens)]
    if (url.includes(':group_uuid')) return [pick(groups)]
    return ['none']
  }
  // Those that wait, and those of files.
  const left = [...routes].filter((url) => !/consumers|events|view_key|logout|health|static|assets|\*/.test(url))
  const { text } = pick(markers)
  return [
    ...left.flatMap((url) => namesFor(url).map((name) => url.replace(/:\w+/g, name))),
    ...[`/admin/search/?q=${text}`, `/api/v3/providers/all/?search=${text}`],
    ...['/api/v3/core/applications/?page_size=100', '/api/v3/core/audit/?page_size=100'],
  ]
}

async function judgeOthers(caller: Caller, pick: Pick): Promise<string[]> {
  const faults: string[] = []
  for (const url of new Set(await otherReads(pick))) {
    const read = async () => {
      if (!url.startsWith('/admin/')) return caller.get(url)
      const { statusCode, body } = await dashboard.get(caller, url)
      return { status: statusCode, text: body }
    }
    const { status, text } = await read()
    count[status === 200 ? 'answers' : 'refused'] += 1
    if (status >= 500) faults.push(`${url}: ${status}`)
    // A search repeats the text that was sent.
    if (textsIn(text).some((each) => !url.includes(each))) faults.push(`${url} has a secret`)
  }
  return faults
}

const pickBy = (die: number): Pick => {
  let at = die
  return (from) => {
    at += 7_919
    const [item] = from.slice(at % from.length)
    if (from.length === 0) expect.fail('nothing to pick from')
    return item as (typeof from)[number]
  }
}

test('no answer has a secret that its caller may not read, and the routes for consumers have all that it may', async () => {
  await fc.assert(
    fc.asyncProperty(drawn, async (one) => {
      const what = JSON.stringify(one)
      const [caller, pick, kept] = [await callerOf(one), pickBy(one.die), new Map<string, Kept>()]
      expect(await judgeConsumers(caller, kept), what).toEqual([])
      for (const each of changes) {
        const done = await change(caller, each, pick)
        expect(await judgeFollowing(caller, kept), `after ${done}: ${what}`).toEqual([])
      }
      expect(await judgeOthers(caller, pick), what).toEqual([])
    }),
    { numRuns: Math.ceil(20 * inject('rounds')), endOnFailure: true },
  )
  console.info(`secrets: ${JSON.stringify(count)}`)
  for (const name of ['secrets', 'hidden', 'answers', 'refused'] as const) expect(count[name], name).toBeGreaterThan(50)
  // A few callers may lose nothing that they follow.
  const rare = inject('rounds') < 1 ? ([] as const) : (['reset', 'gone'] as const)
  for (const name of ['followed', ...rare] as const) expect(count[name], name).toBeGreaterThan(0)
  const metrics = await admin.get('/-/metrics/')
  expect(metrics.status).toBe(200)
  for (const text of [metrics.text, there.log.join('\n'), await everything(db)]) expect(textsIn(text)).toEqual([])
})

test('what is planted is found', async () => {
  const permissions = [...ofKinds, 'read_certificatekeypair_secrets'].filter((each) => each !== 'view_scimprovider')
  const person = { roles: [{ permissions, owners: [] }], isSuperuser: false }
  const [user, rights] = [await userOf(person), rightsOf(person)]
  const judge = (held: Rights) => judgeConsumers({ get: user.get, token: user.token, held: () => [held] })
  expect(await judge(rights)).toEqual([])
  expect(await judge(rights.difference(new Set(['view_samlprovider'])))).toContain('saml: 200')
  for (const [right, kind] of [
    ['read_oauth2provider_secrets', 'oauth2'],
    ['read_certificatekeypair_secrets', 'ldap'],
  ] as const) {
    const faults = await judge(rights.difference(new Set([right])))
    expect(faults, right).toEqual(expect.arrayContaining([`${kind}: secrets`, `${kind}-none: other secrets`]))
  }
  const faults = await judge(new Set([...rights, 'view_scimprovider']))
  expect(faults).toEqual(expect.arrayContaining(['scim: 403', 'scim: secrets', 'scim-none by name']))
  const { text } = markers.find((each) => 'provider' in each && each.isValid) ?? expect.fail('no secret')
  await execute(db, sql`UPDATE applications SET meta_description = ${text}`)
  const root = await make.user({ superuser: true })
  const found = await judgeOthers({ get: root.get, token: root.token, held: () => [] }, pickBy(0))
  for (const place of [
    /^\/api\/v3\/core\/applications\/ /,
    /^\/api\/v3\/core\/applications\/[\w-]+\/ /,
    /^\/admin\/applications\/[\w-]+\/ /,
  ])
    expect(found).toContainEqual(expect.stringMatching(place))
})
