import { createHash } from 'node:crypto'
import type { Keyring } from '../../src/db/seal.ts'
import type { TokenIntent } from '../../src/token-secret.ts'
import { chainLength, type Organisation, workplace } from './organisation.ts'
import { daysBefore, type People, special } from './people.ts'
import { type Random, stream } from './random.ts'
import type { Row } from './table.ts'
import { seededSecrets } from './token.ts'
import { tokenPurposes } from './words.ts'

/** What users have: groups, tokens, devices, consents. Each function takes the number of a user. */

/** Indexes of a user's groups, each once. */
export function memberships({ seed, purposes, size }: Organisation, persons: People): (number: number) => number[] {
  const numbers = stream(seed, 'memberships')
  const { vpn, popular, readers, admins, onCall, chains, teams, ordinary } = purposes
  return (number) => {
    const random = numbers(number)
    const groups = new Set<number>()
    // Exactly one in five: benchmarks count on the size of the largest group.
    if (number % 5 === special.member % 5) groups.add(vpn)
    if (number === special.reader) groups.add(readers)
    if (special.admins.some((each) => each === number)) groups.add(admins)
    if (special.onCall.some((each) => each === number)) groups.add(onCall)
    if (number === special.member) groups.add(chains[0]?.[chainLength - 1] ?? vpn)
    for (const [index, group] of popular.entries()) if (random.chance(0.08 / (index + 1))) groups.add(group)
    // The same random numbers as for the user's row give the same office.
    const nearby = teams[workplace(persons(number).random).office] ?? []
    const team = nearby[random.below(nearby.length)]
    if (team !== undefined) groups.add(team)
    for (let others = random.skewed(5); others > 0; others -= 1)
      groups.add(ordinary[random.skewed(ordinary.length)] ?? vpn)
    if (random.chance(Math.min(0.02, size.groups / size.users)))
      groups.add(chains[random.below(chains.length)]?.[random.below(chainLength)] ?? vpn)
    return [...groups]
  }
}

/** The token of a user, or none. */
export function tokens({ seed, prefix, today }: Organisation, persons: People, keyring: Keyring) {
  const numbers = stream(seed, 'tokens')
  const secretOf = seededSecrets(keyring)
  return (number: number): Row[] => {
    const random = numbers(number)
    const { username, kind } = persons(number)
    const isForTrials = number === special.reader || number === special.member
    // Seeded superusers get none: its secret can be computed.
    if (!isForTrials && (number < special.count || !(kind.endsWith('service_account') || random.chance(0.3)))) return []
    const intent = isForTrials ? 'api' : intentOf(random)
    const identifier = isForTrials ? username : `${prefix}-${random.pick(tokenPurposes)}-${number}`
    const expires = isForTrials ? daysBefore(today, -365) : daysBefore(today, 30 - 390 * random.fraction())
    const expiring = isForTrials || !kind.endsWith('service_account')
    return [
      {
        pk: random.uuid(today),
        identifier,
        intent,
        description: `Made for ${username}`,
        expires: expiring ? expires : null,
        expiring,
        key_hash: createHash('sha256').update(secretOf(identifier, intent)).digest(),
        checksum_key: keyring.ids[0],
        created_at: daysBefore(expires < today ? expires : today, 30 * random.fraction()),
      },
    ]
  }
}

function intentOf(random: Random): TokenIntent {
  const share = random.fraction()
  if (share < 0.75) return 'api'
  if (share < 0.95) return 'app_password'
  return share < 0.98 ? 'recovery' : 'verification'
}

/** The authenticators of a user: at most two, and none of a service account. */
export function devices({ seed }: Organisation, persons: People, seal: Keyring['seal']) {
  const numbers = stream(seed, 'devices')
  return (number: number): Row[] => {
    const random = numbers(number)
    const { kind, firstName, createdAt } = persons(number)
    if (kind.endsWith('service_account')) return []
    const names = [`${firstName}'s phone`, 'Tablet'].slice(0, random.skewed(3))
    return names.map((name) => {
      const uuid = random.uuid()
      const key = JSON.stringify(random.text(32, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'))
      return {
        uuid,
        name,
        confirmed: !random.chance(0.1),
        sealed_key: seal(key, { table: 'totp_devices', row: uuid, column: 'sealed_key' }),
        created_at: createdAt,
      }
    })
  }
}

const scopes = ['openid email profile', 'openid', 'openid email profile offline_access', ''] as const

/** The consents of a user, at most one for each application. */
export function consents({ seed, today }: Organisation, applications: readonly string[]) {
  const numbers = stream(seed, 'consents')
  return (number: number): Row[] => {
    const random = numbers(number)
    const chosen = new Set(Array.from({ length: random.below(3) }, () => random.skewed(applications.length)))
    return [...chosen].map((application) => {
      const expiring = random.chance(0.7)
      return {
        application_pk: applications[application],
        permissions: random.pick(scopes),
        expires: expiring ? daysBefore(today, 10 - 38 * random.fraction()) : null,
        expiring,
      }
    })
  }
}
