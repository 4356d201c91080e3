import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { withExample } from '../example.ts'
import { sha256 } from '../ids.ts'
import { meet, rightOfStack, rightsOf } from '../permissions.ts'
import { newSecret, tokenIntents } from '../token-secret.ts'
import { type Creator, defineModel, type Moment, type Report, type Values } from './define.ts'
import {
  dateTime,
  filledShownLine,
  identifier,
  integerReference,
  oneOf,
  ownerLabel,
  shownLine,
  unordered,
} from './fields.ts'

/** The most owners of a token. It keeps each of its rights for each of them. */
const maxOwners = 20

const labels = (example: string, description: string) =>
  unordered(withExample(z.array(ownerLabel()).max(maxOwners), [example], description)).default([])

const defaultDays = 30
const dayMs = 86_400_000

/**
 * A token without `expires` expires in 30 days; one that does not expire has no such time. A token keeps its user: moved to
 * another user, it would authenticate as that user (CVE-2024-37905). It keeps its intent too: a token of another intent is in
 * hands that were never to have access.
 */
function compute(values: Values, { before, now, tokenMaxDays }: Moment, report: Report): Values {
  const { expires, expiring, user } = values
  for (const name of ['owners', 'stacks', 'intent']) {
    const are = name === 'intent' ? 'Is' : 'Are'
    if (before !== undefined && values[name] !== undefined && !isDeepStrictEqual(values[name], before[name] ?? []))
      report([name], 'fixed', `${are} fixed when a token is created: leave this field out, or create another token.`)
  }
  if (before !== undefined && user !== undefined && user !== before.user)
    report(['user'], 'fixed', 'A token stays with its user: leave this field out.')
  const isSent = typeof expires === 'string' && expires !== before?.expires
  if (isSent && expiring === false)
    report(['expires'], 'invalid_combination', 'A token that does not expire has no such time.')
  else if (isSent && Date.parse(expires) <= now.getTime())
    report(['expires'], 'invalid_value', 'Must be in the future.')
  if (expiring === false) return { ...values, expires: null }
  if (expires !== null) return values
  if (typeof before?.expires === 'string')
    report(['expires'], 'required', 'A token that expires needs a time: leave this field out to keep the one it has.')
  return { ...values, expires: new Date(now.getTime() + Math.min(defaultDays, tokenMaxDays) * dayMs).toISOString() }
}

/**
 * @param limit the rights that it carries at most; null: all of its user
 * @returns the only rights that the token carries; null: those of its user
 */
export function ceilingOf(
  limit: readonly string[] | null,
  { owners, stacks }: Values,
  { all = [], stacks: own = null }: Pick<Creator, 'all' | 'stacks'>,
): readonly string[] | null {
  const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])
  const [labels, names] = [textsOf(owners), textsOf(stacks)]
  const isInStacks = names.length > 0 || own !== null
  if (labels.length === 0 && !isInStacks) return limit
  const bound = rightsOf(all, labels)
  const rights = limit === null ? bound : [...meet(new Set(limit), new Set(bound))].sort()
  const common = names.length === 0 ? [...(own ?? [])] : names.filter((name) => own?.has(name) !== false)
  // No stack has the empty name: the token writes nothing.
  return isInStacks ? [...rights, ...(common.length === 0 ? [''] : common).map(rightOfStack)] : rights
}

/**
 * The server generates a token's secret. It stores the digest, and the sealed secret until it is viewed once. A token that its
 * creator makes for another user carries no more than the creator's rights at that time.
 */
export default defineModel({
  name: 'service_core.token',
  displayName: 'token',
  table: 'tokens',
  key: 'uuid',
  identifiers: [['identifier']],
  attrs: z.object({
    identifier: withExample(identifier(), 'ada-pipeline'),
    intent: oneOf(tokenIntents, 'TokenIntent').default('api'),
    // Tokens of users who are deactivated later stay: they do not authenticate.
    user: integerReference('user', { only: { column: 'is_active', values: ['true'], atFirst: true } }),
    description: withExample(shownLine(), 'Deploys from the pipeline').default(''),
    expires: withExample(dateTime().nullable(), '2026-12-21T09:30:00.000Z').default(null),
    expiring: z.boolean().default(true),
    managed: filledShownLine(255).nullable().default(null),
    owners: labels(
      'team-a',
      'Set when it is created: its permissions for applications and providers hold only for rows of these owners, and it has no superuser rights. Empty: as its user.',
    ),
    stacks: labels(
      'corp/identity',
      'Set when it is created: it writes by documents of these stacks only, and it has no superuser rights. Empty: as its user.',
    ),
  }),
  columns: { user: 'user_pk' },
  unique: ['identifier', 'managed'],
  readOnly: ['user_obj', 'bound_to'],
  owner: 'user',
  limit: { per: 'user', rows: 100, until: 'expires' },
  compute,
  setByServer({ values, creator, keys, seal }) {
    const intent = tokenIntents.find((each) => each === values.intent) ?? 'api'
    const secret = newSecret(intent, keys)
    const isLimited = creator.permissions !== null && values.user !== creator.self
    return {
      key_hash: sha256(secret),
      checksum_key: keys.ids[0],
      sealed_key: seal(secret, 'sealed_key'),
      created_by: creator.pk,
      ceiling: ceilingOf(isLimited ? creator.permissions : null, values, creator),
    }
  },
})
