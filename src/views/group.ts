import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { groupSummary, groupSummarySelect, toAttributes, toGroupSummary } from './group-summary.ts'
import { limitRepeated, usersOfGroups } from './repeated.ts'
import type { UidOf } from './uid.ts'
import { userBrief, userBriefSelect } from './user.ts'
import { inBatches, inOrder, type Reading, StreamedList, type View } from './view.ts'

/** A group in full, with its direct members and roles. */

const roleReference = z
  .object({
    pk: z.guid().meta({ examples: ['01a1fd66-1f20-7c11-8a30-5b6f3f2d9b01'] }),
    name: z.string().meta({ examples: ['operators'] }),
  })
  .meta({ id: 'Role' })

const schema = groupSummary
  .extend({
    users: z.array(userBrief.shape.pk),
    users_obj: z.array(userBrief).nullable().meta({ description: 'null for a caller without `view_user`.' }),
    roles: z.array(roleReference.shape.pk),
    roles_obj: z.array(roleReference),
  })
  .meta({ id: 'Group' })

export type Group = z.output<typeof schema>

export const groupSelect = {
  ...groupSummarySelect,
  roles: { select: { role: { select: { pk: true, name: true } } }, orderBy: { rolePk: 'asc' } },
  _count: { select: { memberships: true } },
} satisfies Prisma.GroupSelect

type Row = Prisma.GroupGetPayload<{ select: typeof groupSelect }>

type UserBrief = z.output<typeof userBrief>

const toUserBrief = (row: Prisma.UserGetPayload<{ select: typeof userBriefSelect }>, uidOf: UidOf): UserBrief => ({
  pk: row.pk,
  username: row.username,
  name: row.name,
  is_active: row.isActive,
  last_login: row.lastLogin?.toISOString() ?? null,
  email: row.email,
  attributes: toAttributes(row.attributes),
  uid: uidOf(row.pk),
})

export const toGroup = <Users, UsersObj>(row: Row, members: { users: Users; users_obj: UsersObj }) => ({
  ...toGroupSummary(row),
  ...members,
  roles: row.roles.map(({ role }) => role.pk),
  roles_obj: row.roles.map(({ role }) => role),
})

/** Members that are read and held at once: in full, with all their attributes, or as keys. */
const maxMembers = { full: 1_000, keys: 5_000 } as const

async function* read(tx: Tx, keys: readonly string[], { uidOf, related }: Omit<Reading, 'actor'>) {
  const rows = await tx.group.findMany({
    where: { pk: { in: [...keys] } },
    select: groupSelect,
    // The other strategy would count the members of all groups that there are.
    relationLoadStrategy: 'join',
  })
  const most = related ? maxMembers.full : maxMembers.keys
  const groups = inOrder(keys, rows, ({ pk }) => pk)
  const times = groups.reduce((sum, { _count }) => sum + _count.memberships, 0)
  if (related) await limitRepeated(times, () => usersOfGroups(tx, keys))
  for (const batch of inBatches(groups, most, ({ _count }) => _count.memberships)) {
    const size = batch.reduce((sum, { _count }) => sum + _count.memberships, 0)
    if (size > most) {
      // One group of very many members: they are read while they are sent.
      yield batch.map((row) =>
        toGroup(row, {
          users: new StreamedList(streamKeys(tx, row.pk, maxMembers.keys)),
          users_obj: related ? new StreamedList(streamBriefs(tx, row.pk, uidOf)) : null,
        }),
      )
      continue
    }
    const members = size === 0 ? [] : await readMembers(tx, batch, { take: size })
    const briefs = related ? await readBriefs(tx, members, uidOf) : null
    const byGroup = Map.groupBy(members, ({ groupPk }) => groupPk)
    yield batch.map((row) => {
      const own = byGroup.get(row.pk) ?? []
      return toGroup(row, { users: own.map(({ userPk }) => userPk), users_obj: briefs && briefsOf(own, briefs) })
    })
  }
}

type Member = { readonly groupPk: string; readonly userPk: number }

/** @param after the key behind which to begin */
const readMembers = (
  tx: Tx,
  groups: readonly { pk: string }[],
  { take, after = 0 }: { take: number; after?: number },
) =>
  tx.membership.findMany({
    where: { groupPk: { in: groups.map(({ pk }) => pk) }, userPk: { gt: after } },
    orderBy: { userPk: 'asc' },
    take,
    select: { groupPk: true, userPk: true },
  })

/** The users of these memberships, each once. */
async function readBriefs(tx: Tx, members: readonly Member[], uidOf: UidOf): Promise<ReadonlyMap<number, UserBrief>> {
  if (members.length === 0) return new Map()
  const keys = [...new Set(members.map(({ userPk }) => userPk))]
  const users = await tx.user.findMany({ where: { pk: { in: keys } }, select: userBriefSelect })
  return new Map(users.map((row) => [row.pk, toUserBrief(row, uidOf)]))
}

const briefsOf = (members: readonly Member[], briefs: ReadonlyMap<number, UserBrief>): UserBrief[] =>
  members.flatMap(({ userPk }) => briefs.get(userPk) ?? [])

async function* streamMembers(tx: Tx, pk: string, take: number): AsyncGenerator<Member[]> {
  let members = await readMembers(tx, [{ pk }], { take })
  while (members.length > 0) {
    yield members
    members = await readMembers(tx, [{ pk }], { take, after: members.at(-1)?.userPk ?? 0 })
  }
}

async function* streamKeys(tx: Tx, pk: string, take: number): AsyncGenerator<number[]> {
  for await (const members of streamMembers(tx, pk, take)) yield members.map(({ userPk }) => userPk)
}

async function* streamBriefs(tx: Tx, pk: string, uidOf: UidOf): AsyncGenerator<UserBrief[]> {
  for await (const members of streamMembers(tx, pk, maxMembers.full))
    yield briefsOf(members, await readBriefs(tx, members, uidOf))
}

export const groupView = { model: 'Group', schema, read } satisfies View<'Group'>

/** One group as its writer sees it, read whole: it is answered after the transaction. */
export async function readGroup(tx: Tx, pk: string, { uidOf, related }: Omit<Reading, 'actor'>): Promise<Group> {
  const row = await tx.group.findUniqueOrThrow({ where: { pk }, select: groupSelect, relationLoadStrategy: 'join' })
  if (!related) {
    const users = (await Array.fromAsync(streamKeys(tx, pk, maxMembers.keys))).flat()
    return toGroup(row, { users, users_obj: null })
  }
  const members = (await Array.fromAsync(streamBriefs(tx, pk, uidOf))).flat()
  return toGroup(row, { users: members.map((user) => user.pk), users_obj: members })
}
