import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { withExample } from '../example.ts'
import { groupSummary, groupSummarySelect, toGroupSummary } from './group-summary.ts'
import { briefsOf, readAllKeys, readBriefs } from './members.ts'
import { limitMembers } from './repeated.ts'
import { userBrief } from './user.ts'
import { inBatches, inOrder, type Reading, StreamedList, type View } from './view.ts'

/** A group in full, with its direct members and roles. */

const roleReference = z
  .object({
    pk: withExample(z.guid(), '01a1fd66-1f20-7c11-8a30-5b6f3f2d9b01'),
    name: withExample(z.string(), 'operators'),
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

const select = {
  ...groupSummarySelect,
  roles: { select: { role: { select: { pk: true, name: true } } }, orderBy: { rolePk: 'asc' } },
  _count: { select: { memberships: true } },
} satisfies Prisma.GroupSelect

type GroupRow = Prisma.GroupGetPayload<{ select: typeof select }>

const toGroup = <Users, UsersObj>(row: GroupRow, members: { users: Users; users_obj: UsersObj }) => ({
  ...toGroupSummary(row),
  ...members,
  roles: row.roles.map(({ role }) => role.pk),
  roles_obj: row.roles.map(({ role }) => role),
})

/** The most members that are read and held at once: in full, with all their attributes, or as keys. */
const maxMembers = { full: 1_000, keys: 5_000 } as const

type HowRead = Omit<Reading, 'actor'>

async function* read(tx: Tx, keys: readonly string[], how: HowRead): AsyncGenerator<(tx: Tx) => Promise<object[]>> {
  // By Prisma's default strategy, one statement: the other would count the members of all groups.
  const rows = await tx.group.findMany({ where: { pk: { in: [...keys] } }, select })
  const most = how.related ? maxMembers.full : maxMembers.keys
  const groups = inOrder(keys, rows, ({ pk }) => pk)
  if (how.related) limitMembers(groups.map(({ _count }) => _count.memberships))
  for (const batch of inBatches(groups, most, ({ _count }) => _count.memberships)) {
    const [first] = batch
    // A group with more members is a batch by itself.
    if (first !== undefined && first._count.memberships > most)
      yield async (tx) => [toLarge(first, await readAllKeys(tx, first.pk), how)]
    else yield (tx) => readSmall(tx, batch, how)
  }
}

async function readSmall(tx: Tx, groups: readonly GroupRow[], { uidOf, related }: HowRead): Promise<object[]> {
  const filled = groups.filter(({ _count }) => _count.memberships > 0).map(({ pk }) => pk)
  const where = { groupPk: { in: filled } }
  const members = filled.length === 0 ? [] : await tx.membership.findMany({ where, orderBy: { userPk: 'asc' } })
  const keysOf = Map.groupBy(members, ({ groupPk }) => groupPk)
  const used = members.map(({ userPk }) => userPk)
  const briefs = related ? await readBriefs(tx, used, uidOf) : null
  return groups.map((row) => {
    const users = (keysOf.get(row.pk) ?? []).map(({ userPk }) => userPk)
    return toGroup(row, { users, users_obj: briefs && briefsOf(users, briefs) })
  })
}

/**
 * A large group, whose users are read while they are sent.
 *
 * @param keys the keys of all members, read together, so that `users` and `users_obj` agree
 */
function toLarge(row: GroupRow, keys: readonly number[], { uidOf, related }: HowRead): object {
  const portions = Array.from({ length: Math.ceil(keys.length / maxMembers.full) }, (_, index) => {
    const some = keys.slice(index * maxMembers.full, (index + 1) * maxMembers.full)
    return async (tx: Tx) => briefsOf(some, await readBriefs(tx, some, uidOf))
  })
  return toGroup(row, { users: new StreamedList([keys]), users_obj: related ? new StreamedList(portions) : null })
}

export const groupView = { model: 'Group', schema, read } satisfies View<'Group'>

/** One group as its writer sees it. The users of a large one are read when the answer is sent, after the transaction. */
export async function readGroup(tx: Tx, pk: string, how: HowRead): Promise<object> {
  const [group] = (await Array.fromAsync(read(tx, [pk], how), (batch) => batch(tx))).flat()
  if (group === undefined) throw new Error(`there is no group ${pk}`)
  return group
}
