import type { UserType } from '../../src/models/user.ts'
import { type Organisation, workplace } from './organisation.ts'
import { type Random, stream } from './random.ts'
import type { Row } from './table.ts'
import { firstNames, lastNames, plain, robots } from './words.ts'

/** Users by number, from 0. The first ones have fixed purposes, for trials. */
export const special = {
  /** A service account that may view everything. */
  reader: 0,
  /** A member of the last group of a chain, of the largest group and of several others. */
  member: 1,
  admins: [2, 3, 4, 5, 6],
  onCall: [7, 8, 9],
  /** The number of these users. */
  count: 10,
} as const

export type Person = {
  readonly username: string
  readonly name: string
  readonly firstName: string
  readonly kind: UserType
  readonly isActive: boolean
  readonly createdAt: Date
  /** Gives the rest of the user's row. */
  readonly random: Random
}

const dayMs = 86_400_000
export const daysBefore = (moment: Date, days: number): Date => new Date(moment.getTime() - Math.round(days * dayMs))

/** A prime that does not divide the number of names: every name comes once before one comes again. */
const step = 7_919
const combinations = firstNames.length * lastNames.length

/** @returns the user with a number, which depends on the seed and that number alone */
export function people({ seed, prefix, today }: Pick<Organisation, 'seed' | 'prefix' | 'today'>) {
  const numbers = stream(seed, 'users')
  return (number: number): Person => {
    const random = numbers(number)
    const kind = kindOf(number, random)
    const names = kind.endsWith('service_account') ? serviceAccountNames(number, random) : humanNames(number)
    return {
      ...names,
      username: `${prefix}-${nameOf(number) ?? names.username}`,
      kind,
      isActive: !random.chance(0.04) || number < special.count,
      createdAt: daysBefore(today, 1 + 1_800 * random.fraction()),
      random,
    }
  }
}

export type People = ReturnType<typeof people>

const nameOf = (number: number): string | undefined =>
  number === special.reader ? 'reader' : number === special.member ? 'member' : undefined

function kindOf(number: number, random: Random): UserType {
  if (number === special.reader) return 'service_account'
  if (number < special.count) return 'internal'
  const share = random.fraction()
  if (share < 0.88) return 'internal'
  if (share < 0.96) return 'external'
  return share < 0.99 ? 'service_account' : 'internal_service_account'
}

function serviceAccountNames(number: number, random: Random) {
  const robot = random.pick(robots)
  return { username: `svc-${robot}-${number}`, name: `Service account for ${robot}`, firstName: '' }
}

/** When all names are used, they come again with a number behind them. */
function humanNames(number: number) {
  const round = Math.floor(number / combinations)
  const name = (number * step) % combinations
  const first = firstNames[name % firstNames.length] ?? firstNames[0]
  const last = lastNames[Math.floor(name / firstNames.length)] ?? lastNames[0]
  return {
    username: `${plain(first)}.${plain(last)}${round === 0 ? '' : round + 1}`,
    name: `${first} ${last}`,
    firstName: first,
  }
}

/** The row of a user. */
export function userRow(
  { today, prefix }: Organisation,
  number: number,
  { username, name, kind, isActive, createdAt, random }: Person,
): Row {
  const { department, city } = workplace(random)
  const isPerson = kind === 'internal' || kind === 'external'
  const host = kind === 'external' ? 'partner.example.net' : 'example.com'
  return {
    uuid: random.uuid(),
    username,
    name,
    email: isPerson ? `${username.slice(prefix.length + 1)}@${prefix}.${host}` : '',
    is_active: isActive,
    last_login: random.chance(0.15) ? null : loginAfter(createdAt, today, random),
    attributes: {
      department,
      location: { city: city.city, country: city.country },
      ...(isPerson && { employee_number: 100_000 + number }),
      settings: { locale: city.locale, ...(random.chance(0.3) && { theme: 'dark' }) },
    },
    path: isPerson ? `users/${plain(department)}` : 'users/service-accounts',
    type: kind,
    created_at: createdAt,
  }
}

/** Most logins are recent. */
function loginAfter(createdAt: Date, today: Date, random: Random): Date {
  const days = (today.getTime() - createdAt.getTime()) / dayMs
  return daysBefore(today, days * random.fraction() ** 4)
}
