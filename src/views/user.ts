import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { withExample } from '../example.ts'
import { userTypes } from '../models/user.ts'
import { allows } from '../permissions.ts'
import { avatarOf } from './avatar.ts'
import { groupSummary, readGroupSummaries, readSuperuserGroups, toAttributes } from './group-summary.ts'
import { groupsOfUsers, limitRepeated } from './repeated.ts'
import type { UidOf } from './uid.ts'
import { inBatches, inOrder, type Reading, type View } from './view.ts'

/** A user in full, as lists, consents and tokens show it. */

/** The fields of a user in every form. */
export const userFields = {
  pk: withExample(z.int(), 17),
  username: withExample(z.string(), 'ada'),
  name: withExample(z.string(), 'Ada Lovelace'),
  is_active: z.boolean(),
  email: withExample(z.string(), 'ada@example.com'),
  uid: withExample(z.string(), '3c9d5d0b3f8f4f6d1a55c2b4e0a7f1c2d8e9b6a4f3c2d1e0b9a8f7e6d5c4b3a2'),
}

/** The fields that users show of themselves and of each other. */
export const shownUserFields = {
  avatar: withExample(z.string(), 'https://avatars.example.com/ada.png'),
  type: z.enum(userTypes).meta({ title: 'UserType', examples: ['internal'] }),
}

/** A user as a group shows its members. */
export const userBrief = z
  .object({
    ...userFields,
    last_login: withExample(z.iso.datetime(), '2026-11-20T08:15:00.000Z').nullable(),
    attributes: withExample(z.record(z.string(), z.unknown()), { department: 'platform' }),
  })
  .meta({ id: 'UserBrief' })

export type UserBrief = z.output<typeof userBrief>

type BriefRow = Pick<Prisma.UserModel, 'pk' | 'username' | 'name' | 'isActive' | 'lastLogin' | 'email' | 'attributes'>

export const toUserBrief = (row: BriefRow, uidOf: UidOf): UserBrief => ({
  pk: row.pk,
  username: row.username,
  name: row.name,
  is_active: row.isActive,
  last_login: row.lastLogin?.toISOString() ?? null,
  email: row.email,
  attributes: toAttributes(row.attributes),
  uid: uidOf(row.pk),
})

const schema = z
  .object({
    ...userBrief.shape,
    ...shownUserFields,
    is_superuser: withExample(z.boolean(), false, 'By any of the groups, or a group above one of them.'),
    groups: z.array(groupSummary.shape.pk),
    groups_obj: z.array(groupSummary).nullable(),
    path: withExample(z.string(), 'users/staff'),
    uuid: withExample(z.guid(), '7d0f4b1e-5c62-4f0e-9c53-0e2f7a1b9c44'),
  })
  .meta({ id: 'User' })

export type User = z.output<typeof schema>

const include = {
  memberships: { select: { groupPk: true }, orderBy: { groupPk: 'asc' } },
} satisfies Prisma.UserInclude

/** The most memberships whose groups are held at once, with all their attributes. */
const maxMemberships = 4_000

async function* read(tx: Tx, keys: readonly number[], { uidOf, related }: Omit<Reading, 'actor'>) {
  const rows = await tx.user.findMany({ where: { pk: { in: [...keys] } }, include })
  const users = inOrder(keys, rows, ({ pk }) => pk)
  const times = users.reduce((sum, { memberships }) => sum + memberships.length, 0)
  if (related) await limitRepeated(times, () => groupsOfUsers(tx, keys))
  for (const batch of inBatches(users, maxMemberships, ({ memberships }) => memberships.length)) {
    const groups = new Set(batch.flatMap(({ memberships }) => memberships.map(({ groupPk }) => groupPk)))
    yield async (tx: Tx): Promise<User[]> => {
      const superuserGroups = await readSuperuserGroups(tx, groups)
      const summaries = related ? await readGroupSummaries(tx, groups) : null
      return batch.map((row) => {
        const groups = row.memberships.map(({ groupPk }) => groupPk)
        return {
          ...toUserBrief(row, uidOf),
          is_superuser: groups.some((group) => superuserGroups.has(group)),
          groups,
          groups_obj: summaries && groups.flatMap((group) => summaries.get(group) ?? []),
          avatar: avatarOf(row.name || row.username, row.attributes),
          path: row.path,
          type: row.type,
          uuid: row.uuid,
        }
      })
    }
  }
}

export const userView = { model: 'User', schema, read } satisfies View<'User'>

/**
 * A user in the form for a caller who may not view users: the key. The other members are there, because the form has them, and
 * hold nothing of the user.
 */
const onlyKey = (pk: number): User => ({
  pk,
  username: '',
  name: '',
  is_active: false,
  last_login: null,
  is_superuser: false,
  groups: [],
  groups_obj: [],
  email: '',
  avatar: '',
  attributes: {},
  uid: '',
  path: '',
  type: 'internal',
  uuid: '00000000-0000-0000-0000-000000000000',
})

/** The rule by which users are shown beside other objects, for descriptions. */
export const shownBeside =
  'In full with `view_user`, and to the user. To others the key: `pk`. The other members are empty, false, or the same for all users then.'

/** These users by key, as the caller may see them: a view that shows users reads each of them once. */
export async function readUsers(
  tx: Tx,
  keys: Iterable<number>,
  { uidOf, actor }: Pick<Reading, 'uidOf' | 'actor'>,
): Promise<ReadonlyMap<number, User>> {
  const isShown = (pk: number) => pk === actor.pk || allows(actor, 'view_user')
  const { shown = [], hidden = [] } = Object.groupBy(new Set(keys), (pk) => (isShown(pk) ? 'shown' : 'hidden'))
  const batches = shown.length === 0 ? [] : read(tx, shown, { uidOf, related: true })
  const users = (await Array.fromAsync(batches, (batch) => batch(tx))).flat()
  return new Map([...users, ...hidden.map(onlyKey)].map((user) => [user.pk, user]))
}
