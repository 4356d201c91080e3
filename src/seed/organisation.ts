import type { Permission } from '../permissions.ts'
import { type Random, stream } from './random.ts'
import { rolesOf } from './roles.ts'
import { birds, cities, departments, plain, popularThings } from './words.ts'

/** The groups of an organisation and what they are for: worked out whole before any row, because rows refer to them. */

export type Size = { readonly users: number; readonly groups: number; readonly applications: number }

export const chainLength = 50

export type SeededGroup = {
  readonly pk: string
  readonly name: string
  readonly isSuperuser: boolean
  /** The index of a group that stands before this one. */
  readonly parent: number | null
  readonly attributes: Readonly<Record<string, unknown>>
  /** Indexes of roles. */
  readonly roles: readonly number[]
}

export type SeededRole = { readonly pk: string; readonly name: string; readonly permissions: readonly Permission[] }

/** Groups by what they are for, as indexes. */
export type Places = {
  /** One user in five is in it. */
  readonly vpn: number
  readonly popular: readonly number[]
  readonly readers: number
  readonly admins: number
  readonly onCall: number
  /** Each with `chainLength` groups, the topmost first. */
  readonly chains: readonly (readonly number[])[]
  /** The most particular groups of `department * cities.length + city`. */
  readonly homes: readonly (readonly number[])[]
  /** Departments, offices and teams. */
  readonly ordinary: readonly number[]
}

export type Organisation = {
  readonly seed: number
  /** Before every name that must be unique: `s1`. */
  readonly prefix: string
  readonly size: Size
  /** Midnight, from which all times are counted back and forth. */
  readonly today: Date
  readonly roles: readonly SeededRole[]
  readonly groups: readonly SeededGroup[]
  readonly places: Places
}

export const prefixOf = (seed: number): string => `s${seed}`

/** @param permissions the closed list of permission names, of which the roles are made */
export function organise(seed: number, size: Size, today: Date, permissions: readonly Permission[]): Organisation {
  const prefix = prefixOf(seed)
  const [roleNumbers, groupNumbers] = [stream(seed, 'roles'), stream(seed, 'groups')]
  const roles = rolesOf(permissions).map((role, index) => ({
    ...role,
    name: `${prefix} ${role.name}`,
    pk: roleNumbers(index).uuid(today),
  }))
  const groups: SeededGroup[] = []
  const add: Add = (name, { parent = null, attributes = {}, roles: held = [], isSuperuser = false } = {}) => {
    const index = groups.length
    const pk = groupNumbers(index).uuid(new Date(today.getTime() + index))
    const holds = held.map((role) => roles.findIndex((each) => each.name === `${prefix} ${role}`))
    groups.push({ pk, name: `${prefix} ${name}`, isSuperuser, parent, attributes, roles: holds })
    return index
  }
  const special = addSpecial(add)
  const chains = Array.from({ length: Math.max(1, Math.floor(size.groups / 200)) }, (_, index) => addChain(add, index))
  const { homes, ordinary } = addOffices(add, size.groups - groups.length)
  return { seed, prefix, size, today, roles, groups, places: { ...special, chains, homes, ordinary } }
}

type Details = Partial<Omit<SeededGroup, 'pk' | 'name' | 'roles'>> & { roles?: readonly string[] }
type Add = (name: string, details?: Details) => number

function addSpecial(add: Add): Omit<Places, 'chains' | 'homes' | 'ordinary'> {
  const admins = add('Directory administrators', { isSuperuser: true })
  return {
    admins,
    // Superusers only because of the group above.
    onCall: add('Directory administrators on call', { parent: admins }),
    readers: add('Readers', { roles: ['Reader'] }),
    vpn: add('VPN', { attributes: { settings: { theme: 'system' } } }),
    popular: popularThings.map((thing) => add(thing)),
  }
}

/** A programme of fifty stages, each below the one before. */
function addChain(add: Add, index: number): number[] {
  const round = Math.floor(index / birds.length)
  const programme = `${birds[index % birds.length]}${round === 0 ? '' : ` ${round + 1}`} programme`
  const chain: number[] = []
  for (let stage = 1; stage <= chainLength; stage += 1) {
    const held: Record<number, string[]> = { 1: ['Consent officer'], 20: ['Helpdesk'], 40: ['Group manager'] }
    chain.push(
      add(`${programme}, stage ${String(stage).padStart(2, '0')}`, {
        parent: chain.at(-1) ?? null,
        attributes: { programme: { name: programme, stage } },
        roles: held[stage] ?? [],
      }),
    )
  }
  return chain
}

/** Departments, below them an office in each city, below those their teams: as many as there are groups left. */
function addOffices(add: Add, count: number): Pick<Places, 'homes' | 'ordinary'> {
  const tops = departments.slice(0, count).map((department) =>
    add(department, {
      attributes: { department, settings: { start_page: `/${plain(department)}` } },
      roles: [`${department} staff`],
    }),
  )
  const ordinary = [...tops]
  const offices: number[] = []
  const homes = departments.flatMap((_, index) => cities.map(() => [tops[index] ?? 0]))
  const places = departments.length * cities.length
  for (let number = 0; ordinary.length < count; number += 1) {
    const place = number % places
    const [department, city] = [departments[Math.floor(place / cities.length)], cities[place % cities.length]]
    const attributes = { department, location: { city: city?.city } }
    const round = Math.floor(number / places)
    const name = `${department}, ${city?.city}`
    if (round === 0) {
      offices[place] = add(name, { parent: tops[Math.floor(place / cities.length)] ?? null, attributes })
      homes[place] = [offices[place]]
      ordinary.push(offices[place])
    } else {
      const roles = number % 25 === 0 ? [functions[(number / 25) % functions.length] ?? ''] : []
      const team = add(`${name}, team ${round}`, { parent: offices[place] ?? null, attributes, roles })
      if (round === 1) homes[place] = []
      homes[place]?.push(team)
      ordinary.push(team)
    }
  }
  return { homes, ordinary }
}

/** Roles that some teams hold. */
const functions = ['Helpdesk', 'Group manager', 'Deployer', 'Auditor', 'Queue watcher', 'Role manager']

/** Where somebody works: departments and cities are of different sizes. */
export function workplace(random: Random): { department: string; place: number; city: (typeof cities)[number] } {
  const [department, city] = [random.skewed(departments.length), random.skewed(cities.length)]
  return {
    department: departments[department] ?? departments[0],
    place: department * cities.length + city,
    city: cities[city] ?? cities[0],
  }
}
