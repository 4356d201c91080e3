import type { Permission } from '../../src/permissions.ts'
import { type Random, stream } from './random.ts'
import { rolesOf } from './roles.ts'
import { birds, cities, departments, plain, popularThings } from './words.ts'

/** The groups and roles of an organisation. They are all made before the first row, because rows refer to them. */

export type Size = { readonly users: number; readonly groups: number; readonly applications: number }

export const chainLength = 50

export type SeededGroup = {
  readonly pk: string
  readonly name: string
  readonly isSuperuser: boolean
  /** The index of an earlier group. */
  readonly parent: number | null
  readonly attributes: Readonly<Record<string, unknown>>
  /** Indexes of roles. */
  readonly roles: readonly number[]
}

export type SeededRole = { readonly pk: string; readonly name: string; readonly permissions: readonly Permission[] }

/** Indexes of groups by purpose. */
export type Purposes = {
  /** Has one user in five. */
  readonly vpn: number
  readonly popular: readonly number[]
  readonly readers: number
  readonly admins: number
  readonly onCall: number
  /** Each has `chainLength` groups, the top one first. */
  readonly chains: readonly (readonly number[])[]
  /** The teams of each office, which is `department * cities.length + city`, or the closest group above them. */
  readonly teams: readonly (readonly number[])[]
  /** Departments, offices and teams. */
  readonly ordinary: readonly number[]
}

export type Organisation = {
  readonly seed: number
  /** The start of every unique name: `s1`. */
  readonly prefix: string
  readonly size: Size
  /** Midnight. All times are relative to it. */
  readonly today: Date
  readonly roles: readonly SeededRole[]
  readonly groups: readonly SeededGroup[]
  readonly purposes: Purposes
}

export const prefixOf = (seed: number): string => `s${seed}`

/** @param permissions all permission names */
export function organise(seed: number, size: Size, today: Date, permissions: readonly Permission[]): Organisation {
  const prefix = prefixOf(seed)
  const [roleNumbers, groupNumbers] = [stream(seed, 'roles'), stream(seed, 'groups')]
  const roles = rolesOf(permissions).map((role, index) => ({
    ...role,
    name: `${prefix} ${role.name}`,
    pk: roleNumbers(index).uuid(today),
  }))
  const groups: SeededGroup[] = []
  const add: Add = (name, { parent = null, attributes = {}, roles: roleNames = [], isSuperuser = false } = {}) => {
    const index = groups.length
    const pk = groupNumbers(index).uuid(new Date(today.getTime() + index))
    const roleIndexes = roleNames.map((role) => roles.findIndex((each) => each.name === `${prefix} ${role}`))
    groups.push({ pk, name: `${prefix} ${name}`, isSuperuser, parent, attributes, roles: roleIndexes })
    return index
  }
  const special = addSpecial(add)
  const chains = Array.from({ length: Math.max(1, Math.floor(size.groups / 200)) }, (_, index) => addChain(add, index))
  const { teams, ordinary } = addOffices(add, size.groups - groups.length)
  return { seed, prefix, size, today, roles, groups, purposes: { ...special, chains, teams, ordinary } }
}

type Details = Partial<Omit<SeededGroup, 'pk' | 'name' | 'roles'>> & { roles?: readonly string[] }
type Add = (name: string, details?: Details) => number

function addSpecial(add: Add): Omit<Purposes, 'chains' | 'teams' | 'ordinary'> {
  const admins = add('Directory administrators', { isSuperuser: true })
  return {
    admins,
    // Superusers by inheritance from the group above.
    onCall: add('Directory administrators on call', { parent: admins }),
    readers: add('Readers', { roles: ['Reader'] }),
    vpn: add('VPN', { attributes: { settings: { theme: 'system' } } }),
    popular: popularThings.map((thing) => add(thing)),
  }
}

/** A programme of `chainLength` stages, each below the one before. */
function addChain(add: Add, index: number): number[] {
  const round = Math.floor(index / birds.length)
  const programme = `${birds[index % birds.length]}${round === 0 ? '' : ` ${round + 1}`} programme`
  const chain: number[] = []
  for (let stage = 1; stage <= chainLength; stage += 1) {
    const roles: Record<number, string[]> = { 1: ['Consent officer'], 20: ['Helpdesk'], 40: ['Group manager'] }
    chain.push(
      add(`${programme}, stage ${String(stage).padStart(2, '0')}`, {
        parent: chain.at(-1) ?? null,
        attributes: { programme: { name: programme, stage } },
        roles: roles[stage] ?? [],
      }),
    )
  }
  return chain
}

/** Departments, an office of each in every city, and teams below the offices: `count` groups together. */
function addOffices(add: Add, count: number): Pick<Purposes, 'teams' | 'ordinary'> {
  const tops = departments.slice(0, count).map((department) =>
    add(department, {
      attributes: { department, settings: { start_page: `/${plain(department)}` } },
      roles: [`${department} staff`],
    }),
  )
  const ordinary = [...tops]
  const offices: number[] = []
  const teams = departments.flatMap((_, index) => cities.map(() => [tops[index] ?? 0]))
  const officeCount = departments.length * cities.length
  for (let number = 0; ordinary.length < count; number += 1) {
    const office = number % officeCount
    const [department, city] = [departments[Math.floor(office / cities.length)], cities[office % cities.length]]
    const attributes = { department, location: { city: city?.city } }
    const round = Math.floor(number / officeCount)
    const name = `${department}, ${city?.city}`
    if (round === 0) {
      offices[office] = add(name, { parent: tops[Math.floor(office / cities.length)] ?? null, attributes })
      teams[office] = [offices[office]]
      ordinary.push(offices[office])
    } else {
      const roles = number % 25 === 0 ? [teamRoles[(number / 25) % teamRoles.length] ?? ''] : []
      const team = add(`${name}, team ${round}`, { parent: offices[office] ?? null, attributes, roles })
      if (round === 1) teams[office] = []
      teams[office]?.push(team)
      ordinary.push(team)
    }
  }
  return { teams, ordinary }
}

/** Every 25th team has one of them. */
const teamRoles = ['Helpdesk', 'Group manager', 'Deployer', 'Auditor', 'Queue watcher', 'Role manager']

/** Where a user works. Departments and cities differ in size. */
export function workplace(random: Random): { department: string; office: number; city: (typeof cities)[number] } {
  const [department, city] = [random.skewed(departments.length), random.skewed(cities.length)]
  return {
    department: departments[department] ?? departments[0],
    office: department * cities.length + city,
    city: cities[city] ?? cities[0],
  }
}
