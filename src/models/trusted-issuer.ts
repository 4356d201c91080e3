import { z } from 'zod'
import { withExample } from '../example.ts'
import { isObject, type JsonObject, own } from '../json-object.ts'
import { defineModel, type Values } from './define.ts'
import {
  filledShownLine,
  follow,
  int32,
  jsonObject,
  name,
  oneOf,
  ownerLabel,
  text,
  textLimits,
  unordered,
  username,
  withoutTwice,
} from './fields.ts'
import { faultOfJwks } from './jwks.ts'
import type { Syntax } from './syntax.ts'
import { httpUrl } from './urls.ts'

/** Issuers of identity tokens, such as CI systems, and the rules by which their jobs get access tokens. */

/** Signatures with a private key: a secret that both sides know would let each of them make tokens. */
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'Ed25519',
  'EdDSA',
] as const

/** The fields that say, beside the rules, which jobs get the rights. */
export const trustFields = ['issuer', 'audience', 'jwks', 'algorithms', 'clock_skew'] as const

const mostRules = 200

/** The text of a claim, as rules compare it; undefined for a list or an object. */
const textOf = (claim: unknown): string | undefined =>
  ['string', 'number', 'boolean'].includes(typeof claim) ? String(claim) : undefined

/** A `*` at an end stands for one or more whole segments, between `/` or `:`. */
const pattern: Syntax = (text) =>
  text.replace(/^\*(?=[/:][^*])|(?<=[^*][/:])\*$/, '').includes('*')
    ? 'May have one *, in place of the last segments or of the first ones: refs/heads/* or *:environment:production.'
    : undefined

/** @param wanted exact, or with a `*` at one end */
export function fits(wanted: string, claim: unknown): boolean {
  const [found, fixed] = [textOf(claim), wanted.replace('*', '')]
  if (found === undefined || fixed === wanted) return found === wanted
  return found.length > fixed.length && (wanted.endsWith('*') ? found.startsWith(fixed) : found.endsWith(fixed))
}

/** Claims that say whose token it is: others hold for the jobs of anyone. */
const subjects = [
  ...['sub', 'repository', 'repository_id', 'repository_owner', 'repository_owner_id', 'project_path', 'project_id'],
  ...['namespace_path', 'namespace_id', 'organization_slug', 'organization_id', 'pipeline_id'],
  'oidc.circleci.com/project-id',
]

/** Whether a rule names one of them, or the first segments of one: the first of a subject only says what it is. */
const saysWhose = (claims: Readonly<Record<string, string>>): boolean =>
  subjects.some((subject) => {
    const wanted = claims[subject]
    const fixed = wanted?.split(/[/:]+/).indexOf('*')
    return fixed === -1 || (fixed !== undefined && fixed >= (subject === 'sub' ? 2 : 1))
  })

const rule = z.strictObject({
  name: withExample(name(100), 'shop'),
  claims: withExample(
    z
      .record(filledShownLine(100), follow(pattern, filledShownLine(500)))
      .refine((claims) => Object.keys(claims).length <= 20, 'May have at most 20 claims.')
      .refine(saysWhose, {
        error: `Must say whose token it is, with all of or the first segments of one of: ${subjects.join(', ')}.`,
      }),
    { repository: 'acme/shop', ref: 'refs/heads/main', event_name: 'push' },
    'What the identity token must have. A * in place of the last or the first segments stands for any: refs/heads/*.',
  ),
  user: withExample(username(150), 'pipeline-shop', 'The username of the service account.'),
  owners: withoutTwice(z.array(ownerLabel()).max(20), 'an owner').default([]),
  stacks: withoutTwice(z.array(ownerLabel()).max(20), 'a stack').default([]),
})
export type Rule = z.output<typeof rule>

/** The rules of a row; none when some have errors. */
export const rulesOf = (rules: unknown): readonly Rule[] => z.array(rule).safeParse(rules).data ?? []

/** The first rule by name that the claims of a token satisfy. */
export const ruleFor = (rules: readonly Rule[], claims: JsonObject): Rule | undefined =>
  rules
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .find((each) => Object.entries(each.claims).every(([name, wanted]) => fits(wanted, own(claims, name))))

const gitHub = { by: /^repository/, subject: 'repo:' }
const pullRequest = 'jobs of pull requests, too: add their ref, environment or event'
const inBranch = { ref_protected: /^false$/, ref_type: /^branch$/ }

/** Which patterns the tokens of pull requests may fit, by the claims that tell the system. Other claims do not tell. */
const pullRequests = [
  {
    ...gitHub,
    takes: pullRequest,
    fitting: {
      ...inBranch,
      sub: /:pull_request$|^repo:[^:]*:?\*$/,
      event_name: /^pull_request/,
      ref: /^(refs\/pull\/|\*|refs\/\*)/,
      job_workflow_ref: /^((?!@refs\/(heads|tags)\/).)*$/,
    },
  },
  {
    by: /^project_/,
    subject: 'project_path:',
    takes: pullRequest,
    // A merge request of the project itself has the code of its branch, as a push has.
    fitting: {
      ...inBranch,
      sub: /^project_path:[^:]*:?(ref_type:(branch:(ref:)?)?)?\*$/,
      pipeline_source: /^merge_request/,
      ref: /^$/,
      ref_path: /^(refs\/merge|\*)/,
    },
  },
  {
    ...gitHub,
    // It may run code of a fork, with the ref of the branch that the fork wants to change.
    takes: 'jobs of pull_request_target, too: add event_name or environment',
    fitting: {
      sub: /:ref:(refs\/heads\/.*|refs\/\*|\*)$|^repo:[^:]*:?\*$/,
      event_name: /^pull_request/,
      ref: /^(refs\/heads\/|\*|refs\/\*)/,
      ref_type: /^branch$/,
    },
  },
]

/** Issuers that publish the keys of all their customers. */
const publicIssuer = /^https:\/\/(token\.actions\.githubusercontent\.com|gitlab\.com|oidc\.circleci\.com)(\/|$)/

/** Why rules give rights to more jobs than their author may expect: one sentence each. */
export const doubtsAbout = ({ issuer, jwks, rules }: Values): string[] => [
  ...(isObject(jwks) && publicIssuer.test(String(issuer))
    ? ['its tokens are verified with the keys in jwks, and not with those that the issuer publishes: send jwks: null']
    : []),
  ...rulesOf(rules).flatMap(({ name, claims }) => {
    const { sub = '' } = claims
    const doubt = pullRequests.find(({ by, subject, fitting }) => {
      const isOf = sub.startsWith(subject) || Object.keys(claims).some((each) => by.test(each))
      const patterns = new Map<string, RegExp>(Object.entries(fitting))
      const isTaken = ([each, wanted]: [string, string]) => (patterns.get(each) ?? /./).test(wanted)
      // Not each job has an environment, and those have rules of their own.
      return isOf && Object.entries(claims).every((each) => isTaken(each) && !each[0].startsWith('environment'))
    })
    return doubt === undefined ? [] : [`rule ${JSON.stringify(name)} takes ${doubt.takes}`]
  }),
]

/** An issuer is compared as it is. Tests and a service on the same machine have one without TLS. */
const issuerUrl: Syntax = (text) =>
  httpUrl(text) ??
  (/[?#]/.test(text) ? 'May not hold a query or a fragment.' : undefined) ??
  (/^https:|^http:\/\/(localhost|127\.0\.0\.1|\[::1\])([:/]|$)/.test(text) ? undefined : 'Must start with https://.')

export default defineModel({
  name: 'service_rbac.trustedissuer',
  displayName: 'trusted issuer',
  table: 'trusted_issuers',
  key: 'uuid',
  identifiers: [['name']],
  attrs: z.object({
    name: name(),
    issuer: withExample(
      text(issuerUrl, textLimits.name),
      'https://token.actions.githubusercontent.com',
      'The `iss` of its tokens, exactly.',
    ),
    audience: withExample(filledShownLine(255), 'https://iam.example.com', 'The `aud` that its tokens must have.'),
    jwks: jsonObject()
      .nullable()
      .meta({ description: 'Its public keys, where this service cannot fetch them: a JSON Web Key Set.' })
      .default(null),
    algorithms: unordered(withoutTwice(z.array(oneOf(algorithms)).min(1), 'an algorithm')).default(['RS256', 'ES256']),
    clock_skew: int32(0).max(300, 'Must be at most 300.').meta({ description: 'Seconds.' }).default(60),
    rules: unordered(z.array(rule).max(mostRules)).default([]),
  }),
  // Another row with its URL could take its jobs.
  unique: ['name', 'issuer'],
  rules({ rules, jwks }, report) {
    const names = rulesOf(rules).map((each) => each.name)
    for (const [index, each] of names.entries())
      if (names.indexOf(each) < index) report(['rules', index, 'name'], 'duplicate', 'Two rules have this name.')
    const fault = jwks === null || jwks === undefined ? undefined : faultOfJwks(jwks)
    if (fault !== undefined) report(['jwks'], 'invalid_value', fault)
  },
  doubts: doubtsAbout,
})
