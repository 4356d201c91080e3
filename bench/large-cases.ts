import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { connect, type Db, transaction } from '../src/db/client.ts'
import { query } from '../src/db/raw.ts'
import { keyring } from '../src/db/seal.ts'
import { seededSecrets } from '../tools/seed/token.ts'
import type { Kept, Started } from './kept.ts'
import { prefix } from './large-data.ts'

/** What a large installation is asked beside its lists, and the questions of lists that once cost most. */

/**
 * @property ask throws for another answer than is expected
 * @property fact what else was seen, for a person
 */
export type Case = {
  readonly what: string
  readonly mostMs: number
  ask(): Promise<void>
  fact?(): string
}

type Asked = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  readonly by?: string
  readonly expected?: number
}

const api = '/api/v3'
const mostMs = 100
/** Has a fifth of all users. */
const largestGroup = `${prefix} VPN`
const role = `${prefix} Queue watcher`

/** The connection of `bench` in PostgreSQL. */
export const benchProgram = 'gatewright-bench'

/** @returns the cases, and what ends them */
export async function openCases(
  { database, secretKey, token }: Kept,
  { at, pid }: Started,
): Promise<{ readonly cases: readonly Case[]; close(): Promise<void> }> {
  const { db } = connect(database, { applicationName: benchProgram, max: 1 })
  const ask = async (path: string, { method = 'GET', headers, body, by = token, expected = 200 }: Asked = {}) => {
    const answer = await fetch(`${at}${path.startsWith('/-/') ? '' : api}${path}`, {
      method,
      headers: { authorization: `Bearer ${by}`, ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (answer.status !== expected) throw new Error(`${answer.status} ${bytes.toString('utf8', 0, 300)}`)
    return bytes
  }
  const get =
    (path: string, asked?: Asked): Case['ask'] =>
    async () =>
      void (await ask(path, asked))
  const facts = await readFacts(db)
  const group = `/core/groups/${facts.group}/`
  const shortly = '?include_users=false'
  const usersOfGroup = `/core/users/?groups_by_name=${encodeURIComponent(largestGroup)}`
  const member = seededSecrets(keyring(secretKey))(`${prefix}-member`)
  const watched = watch(pid, () => ask('/-/health/live/'))
  let note = 0
  const cases: Case[] = [
    { what: '1 runs by kind, ordered by title', mostMs, ask: get('/blueprints/runs/?kind=radius&ordering=title') },
    { what: '1 runs by state, ordered by state', mostMs, ask: get('/blueprints/runs/?state=done&ordering=state') },
    { what: `2 users of a group of ${facts.members}`, mostMs, ask: get(usersOfGroup) },
    { what: '2 users of it, middle page', mostMs, ask: get(`${usersOfGroup}&page=${Math.ceil(facts.members / 200)}`) },
    {
      what: `3 users at a path with ${facts.atPath}`,
      mostMs,
      ask: get('/core/users/?path=users/service-accounts'),
    },
    {
      what: '4 a document with ten unknown user names',
      mostMs,
      ask: get('/blueprints/?dry_run=true', { method: 'PUT', body: documentOf(facts.usernames), expected: 400 }),
    },
    {
      what: '5 users by uuid, middle page',
      mostMs,
      ask: get(`/core/users/?ordering=uuid&page=${Math.ceil(facts.users / 200)}`),
    },
    {
      what: `6 PATCH of a group of ${facts.members}`,
      mostMs,
      ask: () =>
        watched.during(async () => {
          note += 1
          return ask(group, { method: 'PATCH', body: { attributes: { note } } })
        }),
      fact: watched.fact,
    },
    {
      what: '6 the same, answered without its users',
      mostMs,
      ask: async () => {
        note += 1
        await ask(`${group}${shortly}`, { method: 'PATCH', body: { attributes: { note } } })
      },
    },
    {
      what: '7 a role for it, without the word: 409',
      mostMs,
      ask: get(group, { method: 'PATCH', body: { roles: [facts.role] }, expected: 409 }),
    },
    {
      what: '7 a role for it, and its removal',
      mostMs: 2 * mostMs,
      ask: async () => {
        await ask(group, { method: 'PATCH', body: { roles: [facts.role] }, headers: { 'gatewright-allow': 'grants' } })
        await ask(group, { method: 'PATCH', body: { roles: [] } })
      },
    },
    {
      what: '7 the same, answered without its users',
      mostMs: 2 * mostMs,
      ask: async () => {
        const granted = { roles: [facts.role] }
        await ask(`${group}${shortly}`, { method: 'PATCH', body: granted, headers: { 'gatewright-allow': 'grants' } })
        await ask(`${group}${shortly}`, { method: 'PATCH', body: { roles: [] } })
      },
    },
    // Audit rows are kept for 30 days at least: a small installation has none that are older.
    ...(facts.auditDays < 30
      ? []
      : [{ what: '8 deletion of 1 000 audit rows', mostMs, ask: () => deleteAndRollBack(db, facts.auditDays) }]),
    { what: '9 the page of groups with it', mostMs, ask: get(`/core/groups/?search=${prefix}%20VPN`) },
    {
      what: '9 the same without its users',
      mostMs,
      ask: get(`/core/groups/?search=${prefix}%20VPN&include_users=false`),
    },
    { what: '9 a page of its members', mostMs, ask: get(`${group}members/?after=${Math.ceil(facts.users / 2)}`) },
    {
      what: `10 a request of a user in ${facts.groupsOfMember} groups`,
      mostMs,
      ask: get('/authenticators/totp/?page_size=1', { by: member }),
    },
    { what: '10 the same user: me', mostMs, ask: get('/core/users/me/', { by: member }) },
  ]
  return { cases, close: () => db.$disconnect() }
}

const factRow = z.object({
  ...{ group: z.guid(), members: z.int(), atPath: z.int(), role: z.guid(), users: z.int(), groupsOfMember: z.int() },
  usernames: z.array(z.string()),
  /** More than 1 000 audit rows are older than these days. */
  auditDays: z.int(),
})

async function readFacts(db: Db): Promise<z.output<typeof factRow>> {
  const [facts] = await query(db, factRow, {
    text: `SELECT g.pk AS "group", (SELECT count(*)::integer FROM memberships m WHERE m.group_pk = g.pk) AS members,
        (SELECT count(*)::integer FROM users WHERE path = 'users/service-accounts') AS "atPath",
        (SELECT pk FROM roles WHERE name = $2) AS role, (SELECT count(*)::integer FROM users) AS users,
        (SELECT count(*)::integer FROM memberships m JOIN users u ON u.pk = m.user_pk WHERE u.username = $3)
          AS "groupsOfMember",
        (SELECT array_agg(username) FROM (SELECT username FROM users ORDER BY uuid LIMIT 10) u) AS usernames,
        (SELECT floor(extract(epoch FROM now() - at) / 86400)::integer - 1
          FROM audit_rows ORDER BY pk OFFSET least(1000, (SELECT count(*) - 1 FROM audit_rows)) LIMIT 1) AS "auditDays"
      FROM groups g WHERE g.name = $1`,
    values: [largestGroup, role, `${prefix}-member`],
  })
  if (facts === undefined) throw new Error(`there is no group ${largestGroup}: the database was not seeded`)
  return facts
}

/** Names that users nearly have. */
const documentOf = (usernames: readonly string[]): object => ({
  version: 1,
  metadata: { name: 'bench of unknown names' },
  entries: [
    {
      model: 'service_core.group',
      identifiers: { name: 'bench of unknown names' },
      attrs: { users: usernames.map((name) => `${name}x`) },
    },
  ],
})

const countRow = z.object({ count: z.int() })

/** Deletes old audit rows as a worker does, but they stay. */
async function deleteAndRollBack(db: Db, days: number): Promise<void> {
  const back = new Error('rolled back')
  const work = transaction(db, async (tx) => {
    const [row] = await query(tx, countRow, {
      text: 'SELECT delete_old_audit_rows($1::integer, $2::integer) AS count',
      values: [days, 1_000],
    })
    throw row?.count === 0 ? new Error(`no audit row is older than ${days} days`) : back
  })
  await work.catch((error: unknown) => {
    if (error !== back) throw error
  })
}

/** Watches a process while it answers: how long others wait, what memory it takes, and how much it sends. */
function watch(pid: number, other: () => Promise<unknown>) {
  let [waitedMs, peakMb, sentMb] = [0, 0, 0]
  const memory = () => {
    const [, kb = 0] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    peakMb = Math.max(peakMb, Number(kb) / 1_000)
  }
  return {
    during: async (work: () => Promise<Buffer>) => {
      let isOver = false
      const watching = (async () => {
        while (!isOver) {
          const from = performance.now()
          await other()
          waitedMs = Math.max(waitedMs, performance.now() - from)
          memory()
          await delay(5)
        }
      })()
      try {
        sentMb = (await work()).length / 1_000_000
      } finally {
        isOver = true
        await watching
      }
    },
    fact: () =>
      `sent ${sentMb.toFixed(1)} MB; another request waited ${waitedMs.toFixed(0)} ms; the API took ${peakMb.toFixed(0)} MB`,
  }
}
