import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { query } from '../db/raw.ts'
import type { UidOf } from './uid.ts'
import { toUserBrief, type UserBrief, userBrief } from './user.ts'
import { type Reading, StreamedList } from './view.ts'

/** The direct members of a group, as the group shows them and as their own pages do. */

const briefRow = z.object({
  pk: z.int(),
  username: z.string(),
  name: z.string(),
  isActive: z.boolean(),
  lastLogin: z.date().nullable(),
  email: z.string(),
  attributes: z.json(),
})

const briefsText = `SELECT pk, username, name, is_active AS "isActive", last_login AS "lastLogin", email, attributes
  FROM users WHERE pk = ANY($1::integer[])`

/** These users, each once. A user who was deleted meanwhile is left out. */
export async function readBriefs(
  tx: Tx,
  keys: Iterable<number>,
  uidOf: UidOf,
): Promise<ReadonlyMap<number, UserBrief>> {
  const distinct = [...new Set(keys)]
  if (distinct.length === 0) return new Map()
  const users = await query(tx, briefRow, { text: briefsText, values: [distinct] })
  return new Map(users.map((row) => [row.pk, toUserBrief(row, uidOf)]))
}

export const briefsOf = (keys: readonly number[], briefs: ReadonlyMap<number, UserBrief>): UserBrief[] =>
  keys.flatMap((key) => briefs.get(key) ?? [])

const keysRow = z.object({ isThere: z.boolean(), keys: z.array(z.int()) })

const keysText = `SELECT EXISTS (SELECT FROM groups g WHERE g.pk = $1::uuid) AS "isThere", ARRAY(
    SELECT m.user_pk FROM memberships m WHERE m.group_pk = $1::uuid AND m.user_pk > $2::integer
    ORDER BY m.user_pk LIMIT $3) AS keys`

/**
 * Reads the keys of the members behind a key, in their order.
 *
 * @returns undefined for no such group
 */
async function readKeys(tx: Tx, group: string, after: number, take: number): Promise<readonly number[] | undefined> {
  const [row] = await query(tx, keysRow, { text: keysText, values: [group, after, take] })
  return row?.isThere === true ? row.keys : undefined
}

const keysAtOnce = 50_000

export async function readAllKeys(tx: Tx, group: string): Promise<number[]> {
  const all: number[] = []
  let keys: readonly number[]
  do {
    keys = (await readKeys(tx, group, all.at(-1) ?? 0, keysAtOnce)) ?? []
    for (const key of keys) all.push(key)
  } while (keys.length === keysAtOnce)
  return all
}

export const groupMember = z
  .object({
    user: userBrief.shape.pk,
    user_obj: userBrief.nullable().meta({ description: 'null for a caller without `view_user`.' }),
  })
  .meta({ id: 'GroupMember' })

/**
 * One page of the members of a group. Its users are read when it is written: their attributes may be long.
 *
 * @param after the key of the last member of the page before; 0: the first page
 * @returns the members, and the `after` of the next page: null for the last one. undefined for no such group
 */
export async function readMembers(
  tx: Tx,
  group: string,
  { after, size }: { readonly after: number; readonly size: number },
  { uidOf, related }: Omit<Reading, 'actor'>,
): Promise<{ readonly members: StreamedList; readonly next: number | null } | undefined> {
  // One member more than the page shows that there is a next page.
  const found = await readKeys(tx, group, after, size + 1)
  if (found === undefined) return undefined
  const keys = found.slice(0, size)
  const next = found.length > size ? (keys.at(-1) ?? null) : null
  const portion = async (tx: Tx): Promise<z.output<typeof groupMember>[]> => {
    if (!related) return keys.map((user) => ({ user, user_obj: null }))
    return briefsOf(keys, await readBriefs(tx, keys, uidOf)).map((brief) => ({ user: brief.pk, user_obj: brief }))
  }
  return { members: new StreamedList([portion]), next }
}
