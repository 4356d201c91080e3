import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { userTypes } from '../models/user.ts'
import { avatarOf } from './avatar.ts'
import {
  type GroupSummary,
  groupSummary,
  readGroupSummaries,
  readSuperuserGroups,
  toAttributes,
} from './group-summary.ts'
import { groupsOfUsers, limitRepeated } from './repeated.ts'
import type { UidOf } from './uid.ts'
import { inBatches, inOrder, type Reading, type View } from './view.ts'

/** A user in full, as lists, consents and tokens show it. */

const schema = z.object({
  pk: z.int(),
  username: z.string(),
  name: z.string(),
  is_active: z.boolean(),
  last_login: z.iso.datetime().nullable(),
  is_superuser: z.boolean().meta({ description: 'By any of the groups, or a group above one of them.' }),
  groups: z.array(z.guid()),
  groups_obj: z.array(groupSummary).nullable(),
  email: z.string(),
  avatar: z.string(),
  attributes: z.record(z.string(), z.unknown()),
  uid: z.string(),
  path: z.string(),
  type: z.enum(userTypes),
  uuid: z.guid(),
})

export type User = z.output<typeof schema>

/** What a group shows of its members. */
export const userBriefSelect = {
  pk: true,
  username: true,
  name: true,
  isActive: true,
  lastLogin: true,
  email: true,
  attributes: true,
} satisfies Prisma.UserSelect

export const userSelect = {
  ...userBriefSelect,
  path: true,
  type: true,
  uuid: true,
  memberships: { select: { groupPk: true }, orderBy: { groupPk: 'asc' } },
} satisfies Prisma.UserSelect

/** What a user's row does not say. */
type Context = {
  readonly uidOf: UidOf
  readonly superuserGroups: ReadonlySet<string>
  /** null: they are left out. */
  readonly summaries: ReadonlyMap<string, GroupSummary> | null
}

export function toUser(
  row: Prisma.UserGetPayload<{ select: typeof userSelect }>,
  { uidOf, superuserGroups, summaries }: Context,
): User {
  const groups = row.memberships.map(({ groupPk }) => groupPk)
  return {
    pk: row.pk,
    username: row.username,
    name: row.name,
    is_active: row.isActive,
    last_login: row.lastLogin?.toISOString() ?? null,
    is_superuser: groups.some((group) => superuserGroups.has(group)),
    groups,
    groups_obj: summaries && groups.flatMap((group) => summaries.get(group) ?? []),
    email: row.email,
    avatar: avatarOf(row.name || row.username, row.attributes),
    attributes: toAttributes(row.attributes),
    uid: uidOf(row.pk),
    path: row.path,
    type: row.type,
    uuid: row.uuid,
  }
}

/** Memberships whose groups are held at once, with all their attributes. */
const maxMemberships = 4_000

async function* read(
  tx: Tx,
  keys: readonly number[],
  { uidOf, related }: Omit<Reading, 'actor'>,
): AsyncGenerator<User[]> {
  const rows = await tx.user.findMany({
    where: { pk: { in: [...keys] } },
    select: userSelect,
    relationLoadStrategy: 'join',
  })
  const users = inOrder(keys, rows, ({ pk }) => pk)
  const times = users.reduce((sum, { memberships }) => sum + memberships.length, 0)
  if (related) await limitRepeated(times, () => groupsOfUsers(tx, keys))
  for (const batch of inBatches(users, maxMemberships, ({ memberships }) => memberships.length)) {
    const groups = new Set(batch.flatMap(({ memberships }) => memberships.map(({ groupPk }) => groupPk)))
    const superuserGroups = await readSuperuserGroups(tx, groups)
    const summaries = related ? await readGroupSummaries(tx, groups) : null
    yield batch.map((row) => toUser(row, { uidOf, superuserGroups, summaries }))
  }
}

export const userView = { model: 'User', schema, read } satisfies View<'User'>

/** These users in full, by key: what shows a user reads each of them once. */
export async function readUsers(tx: Tx, keys: Iterable<number>, uidOf: UidOf): Promise<ReadonlyMap<number, User>> {
  const batches = await Array.fromAsync(read(tx, [...new Set(keys)], { uidOf, related: true }))
  return new Map(batches.flat().map((user) => [user.pk, user]))
}
