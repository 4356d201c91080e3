import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { ErrorList } from '../errors.ts'
import { textLimits } from '../models/fields.ts'

/**
 * An answer repeats the attributes of a group for each of its members, and those of a user for each group. A few rows of
 * 16 KB became answers of gigabytes, so what one answer repeats has a limit.
 */

const maxMb = 64
/** As often, rows of any size may be repeated. */
const unmeasured = Math.floor((maxMb * 1e6) / textLimits.attributes)

/**
 * @param times how often rows are repeated; the rest is only measured when that is often
 * @param measure counts the characters of all repeated attributes
 * @throws {Problem} `invalid` when it is more than one answer may repeat; nothing was sent yet
 */
export async function limitRepeated(times: number, measure: () => Promise<number> | number): Promise<void> {
  if (times <= unmeasured) return
  const mb = Math.ceil((await measure()) / 1e6)
  if (mb <= maxMb) return
  const message = `The page repeats attributes of ${mb} MB, more than ${maxMb}: ask for a smaller page_size, or leave related objects out.`
  const errors = new ErrorList()
  errors.of('parameter').add(['page_size'], 'too_large', message)
  throw errors.problem()
}

const measuredRow = z.object({ characters: z.number() })

/** Characters of the attributes of all groups of these users, each as often as it has one of them as a member. */
export const groupsOfUsers = (tx: Tx, users: readonly number[]): Promise<number> =>
  measured(
    tx,
    `SELECT coalesce(sum(length(g.attributes::text)), 0)::float8 AS characters
      FROM memberships m JOIN groups g ON g.pk = m.group_pk WHERE m.user_pk = ANY($1::integer[])`,
    users,
  )

/** Characters of the attributes of all members of these groups, each as often as it is one. */
export const usersOfGroups = (tx: Tx, groups: readonly string[]): Promise<number> =>
  measured(
    tx,
    `SELECT coalesce(sum(length(u.attributes::text)), 0)::float8 AS characters
      FROM memberships m JOIN users u ON u.pk = m.user_pk WHERE m.group_pk = ANY($1::uuid[])`,
    groups,
  )

async function measured(tx: Tx, text: string, keys: readonly (number | string)[]): Promise<number> {
  const [row] = await query(tx, measuredRow, { text, values: [keys] })
  return row?.characters ?? 0
}
