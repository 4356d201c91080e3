import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { ErrorList, type Problem } from '../errors.ts'
import { textLimits } from '../models/fields.ts'

/**
 * An answer repeats the attributes of a group for each of its members, and a user for each group. A few rows of 16 KB became
 * answers of gigabytes, so the repeated part of an answer has a limit.
 */

const maxMb = 64
/** Repetitions that are allowed for rows of any size. */
const unmeasured = Math.floor((maxMb * 1e6) / textLimits.attributes)

/**
 * @param times how often rows are repeated; the attributes are only measured when that is often
 * @param measure counts the characters of all repeated attributes
 * @throws {Problem} `invalid` when it is more than one answer may repeat; nothing was sent yet
 */
export async function limitRepeated(times: number, measure: () => Promise<number> | number): Promise<void> {
  if (times <= unmeasured) return
  const mb = Math.ceil((await measure()) / 1e6)
  if (mb <= maxMb) return
  throw tooMuch(
    `The page repeats attributes of ${mb} MB, more than ${maxMb}: ask for a smaller page_size, or leave related objects out.`,
  )
}

function tooMuch(message: string): Problem {
  const errors = new ErrorList()
  errors.of('parameter').add(['page_size'], 'too_large', message)
  return errors.problem()
}

/** The most members that groups show together. They are sent as they are read, and each is short: nothing is measured. */
const maxMembers = 500_000

/**
 * @param numbers members by group. A group alone shows all of its members
 * @throws {Problem} `invalid` when it is more than one answer shows; nothing was sent yet
 */
export function limitMembers(numbers: readonly number[]): void {
  const all = numbers.reduce((sum, number) => sum + number, 0)
  if (numbers.length < 2 || all <= maxMembers) return
  throw tooMuch(
    `The page shows ${all} members, more than ${maxMembers}: ask for a smaller page_size, or leave them out with include_users=false.`,
  )
}

const measuredRow = z.object({ characters: z.number() })

/** Characters of the attributes of all groups of these users, each as often as it has one of them as a member. */
export async function groupsOfUsers(tx: Tx, users: readonly number[]): Promise<number> {
  const [row] = await query(tx, measuredRow, {
    text: `SELECT coalesce(sum(length(g.attributes::text)), 0)::float8 AS characters
      FROM memberships m JOIN groups g ON g.pk = m.group_pk WHERE m.user_pk = ANY($1::integer[])`,
    values: [users],
  })
  return row?.characters ?? 0
}
