import fc from 'fast-check'
import { describe, expect, inject, test } from 'vitest'
import trustedIssuer, { doubtsAbout, fits, type Rule, ruleFor, rulesOf } from '../../src/models/trusted-issuer.ts'
import { githubClaims, gitlabClaims } from '../support/issuer.ts'
import { errorsOf, fieldOf, type Row, ruleErrors, testFields } from './check.ts'

/** The rules of trusted issuers: which of them can be stored, which one takes a token, and which take too many. */

const claims = { repository: 'acme/shop' }
const rule = (more: object = {}) => ({ name: 'main', claims, user: 'pipeline-shop', ...more })
const withClaims = (more: object) => [rule({ claims: { ...claims, ...more } })]
const oneStar = '0.claims.ref: May have one *'
const subjectless =
  '0.claims: Must say whose token it is, with all of or the first segments of one of: sub, repository,'
/** Claims that the tokens of one owner alone have. */
const anchored = [
  { repository: 'acme/*' },
  { repository: '*/shop', repository_owner: 'acme' },
  { repository: '*/shop', repository_owner_id: '4711' },
  { sub: 'repo:acme/*' },
  { sub: 'repo:acme/shop:*' },
  { sub: 'me' },
  { sub: 'system:serviceaccount:*' },
  { project_path: 'acme/*' },
  { project_path: '*/shop', namespace_path: 'acme' },
  { project_path: '*/shop', namespace_id: '72' },
  { pipeline_slug: 'shop', organization_slug: 'acme' },
  { pipeline_slug: 'shop', organization_id: '0184990a' },
  { 'oidc.circleci.com/project-id': '7c0e9e1f' },
]
/** Claims that a stranger's tokens may have. */
const ofAnyone = [
  { repository: '*/shop', ref: 'refs/heads/main' },
  { repository_owner: '*/acme' },
  { project_path: '*/shop' },
  { sub: '*:ref:refs/heads/main' },
  { sub: '*/main' },
  { sub: 'repo:*' },
  { sub: 'repo:*', event_name: 'push' },
  { sub: 'repo:*', repository: '*/shop' },
  { sub: 'https:/*' },
  { sub: 'sc://*' },
  { pipeline_slug: 'shop', build_branch: 'main' },
  { job_workflow_ref: 'acme/shop/.github/workflows/deploy.yml@refs/heads/main' },
]
const many = (count: number) => Array.from({ length: count }, (_, index) => String(index))

const fieldRows: readonly Row[] = [
  [
    'issuer',
    [
      'https://token.actions.githubusercontent.com',
      'https://gitlab.example/',
      'https://gitlab.example:8443/a/b',
      'http://localhost:3000',
      'http://127.0.0.1:3000/realm',
      'http://[::1]:3000',
    ],
    [
      ['http://gitlab.example', 'Must start with https://.'],
      ['http://localhost.example', 'Must start with https://.'],
      ['http://127.0.0.1.example', 'Must start with https://.'],
      ['http://127.0.0.10', 'Must start with https://.'],
      ['https://gitlab.example?a=b', 'May not hold a query or a fragment.'],
      ['https://gitlab.example#a', 'May not hold a query or a fragment.'],
      ['ftp://gitlab.example', ''],
      ['gitlab.example', ''],
      ['', ''],
      [`https://gitlab.example/${'a'.repeat(255)}`, 'Must be at most 255 characters.'],
      [null, ''],
    ],
  ],
  [
    'audience',
    ['https://iam.example.com', 'gatewright', 'x'.repeat(255)],
    [
      ['', 'May not be empty.'],
      ['  ', 'May not be empty.'],
      [null, ''],
      [['gatewright'], ''],
      ['x'.repeat(256), 'Must be at most 255 characters.'],
    ],
  ],
  [
    'algorithms',
    [['RS256'], ['ES256', 'EdDSA', 'PS512']],
    [
      [['HS256'], 'Must be one of: RS256'],
      [['RS256', 'HS512'], 'Must be one of: RS256'],
      [['none'], 'Must be one of: RS256'],
      [[], ''],
      [['RS256', 'RS256'], ''],
      ['RS256', ''],
    ],
  ],
  [
    'clock_skew',
    [0, 60, 300],
    [
      [-1, ''],
      [301, 'Must be at most 300.'],
      [1.5, ''],
      ['60', ''],
      [null, ''],
    ],
  ],
  [
    'jwks',
    [null, { keys: [] }],
    [
      [[], ''],
      ['{}', ''],
      [7, ''],
    ],
  ],
  [
    'rules',
    [
      [],
      [rule()],
      [rule({ owners: ['team-a'], stacks: ['corp/identity'] })],
      ...['refs/heads/*', '*/main', 'repo:acme/shop:*', '*:main', 'a', '1', '/'].map((ref) => withClaims({ ref })),
      withClaims(Object.fromEntries(many(19).map((name) => [name, 'x']))),
      ...anchored.map((wanted) => [rule({ claims: wanted })]),
      many(200).map((name) => rule({ name })),
    ],
    [
      ...['*', '**', 'a*', '*a', 'refs/*/main', 'refs/**', '*/*', '*/a/*', '/*', '*/', 'a/*b', 'a/*/', '*:*', ':*'].map(
        (ref) => [withClaims({ ref }), oneStar] as const,
      ),
      [[rule({ claims: {} })], subjectless],
      [[rule({ claims: { ref: 'refs/heads/main', aud: 'x', iss: 'y' } })], subjectless],
      [[rule({ claims: { Repository: 'acme/shop' } })], subjectless],
      [[rule({ claims: Object.fromEntries([['toString', 'x']]) })], subjectless],
      ...ofAnyone.map((wanted) => [[rule({ claims: wanted })], subjectless] as const),
      [withClaims({ ref: '' }), '0.claims.ref: May not be empty.'],
      [withClaims({ ref: 7 }), '0.claims.ref: Must be text.'],
      [withClaims({ ref: ['main'] }), '0.claims.ref: Must be text.'],
      [withClaims({ ref: null }), '0.claims.ref: Must be text.'],
      [withClaims({ ref: 'x'.repeat(501) }), '0.claims.ref: Must be at most 500 characters.'],
      [withClaims({ ['x'.repeat(101)]: 'x' }), '0.claims.'],
      [withClaims(Object.fromEntries(many(20).map((name) => [name, 'x']))), '0.claims: May have at most 20 claims.'],
      [many(201).map((name) => rule({ name })), 'Must be at most 200 entries.'],
      [[rule({ name: '' })], '0.name: '],
      [[rule({ user: '' })], '0.user: '],
      [[{ name: 'main', claims }], '0.user: '],
      [[rule({ owners: ['team-a', 'team-a'] })], '0.owners: '],
      [[rule({ stacks: ['s', 's'] })], '0.stacks: '],
      [[rule({ owners: many(21) })], '0.owners: '],
      [[rule({ groups: [] })], '0: '],
      [[rule({ audience: 'x' })], '0: '],
      [{ main: rule() }, ''],
      [null, ''],
    ],
  ],
]

describe('fields', () => testFields(trustedIssuer, fieldRows))

test('its URL and its audience are required', () => {
  const required = [...trustedIssuer.fields.values()].filter((field) => field.required).map(({ name }) => name)
  expect(required).toEqual(['name', 'issuer', 'audience'])
  expect(fieldOf(trustedIssuer, 'algorithms').initial).toEqual(['RS256', 'ES256'])
})

test('two rules of one name are refused', () => {
  const errors = (values: object) => ruleErrors(trustedIssuer, { jwks: null, ...values })
  expect(errors({ rules: [rule(), rule({ name: 'other' })] })).toEqual([])
  expect(errors({ rules: [rule(), rule({ name: 'other' }), rule({ user: 'x' })] })).toEqual([
    'rules.2.name: Two rules have this name.',
  ])
})

test('keys that are private, shared or none are refused', () => {
  const shared = { kty: 'oct', k: 'c2VjcmV0' }
  for (const jwks of [
    {},
    { keys: 'x' },
    { keys: [] },
    { keys: [shared] },
    { keys: [{ kty: 'RSA' }] },
    { keys: [null] },
  ])
    expect(ruleErrors(trustedIssuer, { rules: [], jwks }), JSON.stringify(jwks)).toEqual([
      expect.stringMatching(/^jwks: /),
    ])
})

describe('patterns', () => {
  test.each([
    [
      'refs/heads/*',
      ['refs/heads/main', 'refs/heads/a/b', 'refs/heads//'],
      ['refs/heads/', 'refs/heads', 'refs/headsX/a'],
    ],
    ['*/shop', ['acme/shop', 'a/b/shop', '//shop'], ['/shop', 'shop', 'acme/workshop', 'acme/shop/', 'acme/Shop']],
    [
      'repo:acme/shop:*',
      ['repo:acme/shop:ref:refs/heads/main'],
      ['repo:acme/shop:', 'repo:acme/shop-x:ref', 'repo:acme/shop'],
    ],
    ['*:main', ['a:main', 'a:b:main'], [':main', 'main', 'a:main2']],
    ['acme/shop', ['acme/shop'], ['acme/shop/', 'ACME/shop', ' acme/shop', 'acme/sho', 'acme/shop\n', 'acme/*']],
    ['22', [22, '22'], [22.5, '022', [22], { 22: 22 }, true]],
    ['true', [true, 'true'], [1, 'True', [true]]],
    ['null', ['null'], [null, undefined]],
    ['undefined', ['undefined'], [null, undefined]],
    ['[object Object]', ['[object Object]'], [{}]],
    ['a/*', ['a/*', 'a/b'], [['a/b'], { toString: 'a/b' }]],
  ] as const)('%s', (wanted, good, bad) => {
    for (const claim of good) expect(fits(wanted, claim), JSON.stringify(claim)).toBe(true)
    for (const claim of bad) expect(fits(wanted, claim), JSON.stringify(claim)).toBe(false)
  })
})

/** Which rule takes a token, written again: text by text, with no part of the model. */
function oracle(rules: readonly Rule[], token: ReadonlyMap<string, unknown>): string | undefined {
  const quoted = (text: string) => text.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&')
  const isMet = ([name, wanted]: [string, string]): boolean => {
    const claim = token.get(name)
    if (claim === null || claim === undefined || typeof claim === 'object') return false
    return new RegExp(`^${quoted(wanted).replace('*', '[^]+')}$`).test(`${claim}`)
  }
  const taking = rules.filter((each) => Object.entries(each.claims).every(isMet)).map(({ name }) => name)
  return taking.sort()[0]
}

const segment = fc.constantFrom('a', 'b', 'ab', '', '.', '1', 'main', '*', '(', '\n', 'ä')
const path = fc
  .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.constantFrom('/', ':'))
  .map(([segments, between]) => segments.join(between))
const claimName = fc.constantFrom('sub', 'repository', 'ref', 'event_name', 'constructor', 'toString', '__proto__')
const ruleOf = fc
  .record({
    name: fc.constantFrom('a', 'b', 'B', 'c', 'a-', 'ä', '10', '9'),
    claims: fc.dictionary(claimName, path, { minKeys: 1, maxKeys: 3 }),
    user: fc.constant('x'),
  })
  .filter((each) => errorsOf(trustedIssuer, 'rules', [each]).length === 0)
  .map((each) => rulesOf([each])[0] as Rule)
const rulesOfOne = fc.uniqueArray(ruleOf, { selector: ({ name }) => name, maxLength: 6 })
const claimValue = fc.oneof({ weight: 8, arbitrary: path }, fc.constantFrom(1, true, null, [], ['a'], { a: 'b' }, 0.5))

test('random rules take random tokens as an oracle says', () => {
  const seen = { taken: 0, left: 0, starred: 0 }
  fc.assert(
    fc.property(rulesOfOne, fc.dictionary(claimName, claimValue, { maxKeys: 4 }), fc.nat(), (rules, others, which) => {
      // Half of the tokens begin as what some rule wants.
      const wanted = which % 2 === 0 ? (rules[which % (rules.length || 1)]?.claims ?? {}) : {}
      const made = Object.entries(wanted).map(([name, text]) => [name, text.replace('*', 'x')] as const)
      const token = new Map([...Object.entries(others), ...made])
      const expected = oracle(rules, token)
      const asSent = JSON.parse(
        `{${[...token].map((pair) => pair.map((each) => JSON.stringify(each)).join(':')).join()}}`,
      )
      const found = ruleFor(rules, asSent)
      expect(found?.name).toBe(expected)
      expect(ruleFor(rules.toReversed(), asSent)?.name).toBe(expected)
      if (found === undefined) seen.left += 1
      else seen.taken += 1
      if (found !== undefined && JSON.stringify(found.claims).includes('*')) seen.starred += 1
    }),
    { numRuns: 8_000 * inject('rounds') },
  )
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(50)
})

describe('doubts', () => {
  const doubted = (wanted: Record<string, string>) => doubtsAbout({ rules: [rule({ claims: wanted })] }).length === 1

  test.each<[string, boolean, Record<string, string>]>([
    ['GitHub: the repository alone', true, { repository: 'acme/shop' }],
    ['GitHub: its key alone', true, { repository_id: '81234' }],
    ['GitHub: all repositories of an owner', true, { repository: 'acme/*' }],
    ['GitHub: any ref', true, { repository: 'acme/shop', ref: 'refs/*' }],
    ['GitHub: refs of pull requests', true, { repository: 'acme/shop', ref: 'refs/pull/*' }],
    ['GitHub: the event of pull requests', true, { repository: 'acme/shop', event_name: 'pull_request' }],
    ['GitHub: any subject of a repository', true, { sub: 'repo:acme/shop:*' }],
    ['GitHub: the subject of pull requests', true, { sub: 'repo:acme/shop:pull_request' }],
    [
      'GitHub: the workflow, which a pull request may have changed',
      true,
      { repository: 'acme/shop', workflow: 'deploy' },
    ],
    ['GitHub: all repositories of an owner, by the owner', true, { repository_owner: 'acme' }],
    ['GitHub: one pull request', true, { repository: 'acme/shop', ref: 'refs/pull/7/merge' }],
    ['GitHub: any ref of one end', true, { repository: 'acme/shop', ref: '*/merge' }],
    [
      'GitHub: the event of pull requests, with the rights of the target',
      true,
      { repository: 'acme/shop', event_name: 'pull_request_target' },
    ],
    ['GitHub: branches or pull requests', true, { repository: 'acme/shop', ref_type: 'branch' }],
    ['GitHub: the branch into which it would go', true, { repository: 'acme/shop', base_ref: 'main' }],
    [
      'GitHub: a workflow of any ref',
      true,
      { repository: 'acme/shop', job_workflow_ref: 'acme/shop/.github/workflows/*' },
    ],
    [
      'GitHub: a workflow of one branch',
      true,
      {
        repository: 'acme/shop',
        job_workflow_ref: 'acme/shop/.github/workflows/deploy.yml@refs/heads/main',
      },
    ],
    ['GitHub: tags, by their type', false, { repository: 'acme/shop', ref_type: 'tag' }],
    ['GitHub: one branch', true, { repository: 'acme/shop', ref: 'refs/heads/main' }],
    ['GitHub: all branches', true, { repository: 'acme/shop', ref: 'refs/heads/*' }],
    ['GitHub: all tags', false, { repository: 'acme/shop', ref: 'refs/tags/*' }],
    ['GitHub: pushes to one branch', false, { repository: 'acme/shop', ref: 'refs/heads/main', event_name: 'push' }],
    ['GitHub: a branch, for forks', true, { repository: 'acme/shop', event_name: 'pull_request_target' }],
    [
      'GitHub: an environment of a branch',
      false,
      { repository: 'acme/shop', ref: 'refs/heads/main', environment: 'x' },
    ],
    ['GitHub: the subjects of all tags', false, { sub: 'repo:acme/shop:ref:refs/tags/*' }],
    ['GitHub: the subject of any pull request', true, { repository_owner_id: '1', sub: '*/shop:pull_request' }],
    ['GitHub: pushes', false, { repository: 'acme/shop', event_name: 'push' }],
    ['GitHub: an environment', false, { repository: 'acme/shop', environment: 'production' }],
    ['GitHub: protected branches', true, { repository: 'acme/shop', ref_protected: 'true' }],
    ['GitHub: the subject of a branch', true, { sub: 'repo:acme/shop:ref:refs/heads/main' }],
    ['GitHub: the subjects of all branches', true, { sub: 'repo:acme/shop:ref:refs/heads/*' }],
    ['GitHub: the subject of an environment', false, { sub: 'repo:acme/shop:environment:production' }],
    ['GitLab: the project alone', true, { project_path: 'acme/shop' }],
    ['GitLab: its key alone', true, { project_id: '22' }],
    ['GitLab: any subject of a project', true, { sub: 'project_path:acme/shop:*' }],
    [
      'GitLab: the event of merge requests',
      true,
      { project_path: 'acme/shop', pipeline_source: 'merge_request_event' },
    ],
    ['GitLab: branches that are not protected', true, { project_path: 'acme/shop', ref_protected: 'false' }],
    ['GitLab: refs of merge requests', true, { project_path: 'acme/shop', ref_path: 'refs/merge-requests/*' }],
    ['GitLab: branches or merge requests', true, { project_path: 'acme/shop', ref_type: 'branch' }],
    ['GitLab: branches of one kind', false, { project_path: 'acme/shop', ref: 'feature/*' }],
    ['GitLab: tags, by their type', false, { project_path: 'acme/shop', ref_type: 'tag' }],
    ['GitLab: a branch, by its path', false, { project_path: 'acme/shop', ref_path: 'refs/heads/main' }],
    ['GitLab: one branch', false, { project_path: 'acme/shop', ref: 'main' }],
    ['GitLab: protected branches', false, { project_path: 'acme/shop', ref_protected: 'true' }],
    ['GitLab: pushes', false, { project_path: 'acme/shop', pipeline_source: 'push' }],
    ['GitLab: the subject of a branch', false, { sub: 'project_path:acme/shop:ref_type:branch:ref:main' }],
    ['GitLab: tags', false, { sub: 'project_path:acme/shop:ref_type:tag:ref:*' }],
    ['GitLab: an environment', false, { project_path: 'acme/shop', environment: 'production' }],
    ['Kubernetes: a service account', false, { sub: 'system:serviceaccount:ci:deployer' }],
    ['Buildkite: a pipeline', false, { organization_slug: 'acme', pipeline_slug: 'shop' }],
  ])('%s', (_, expected, wanted) => expect(doubted(wanted)).toBe(expected))

  test('they name their rule, each one, and rules with errors have none', () => {
    const rules = [
      rule(),
      rule({ name: 'sure', claims: { ...claims, ref: 'refs/heads/main', event_name: 'push' } }),
      rule({ name: 'target', claims: { ...claims, ref: 'refs/heads/main' } }),
      rule({ name: 'any "x"' }),
    ]
    expect(doubtsAbout({ rules })).toEqual([
      'rule "main" takes jobs of pull requests, too: add their ref, environment or event',
      'rule "target" takes jobs of pull_request_target, too: add event_name or environment',
      'rule "any \\"x\\"" takes jobs of pull requests, too: add their ref, environment or event',
    ])
    expect(doubtsAbout({ rules: [{ name: 'main' }] })).toEqual([])
    expect(doubtsAbout({})).toEqual([])
  })

  test('keys of its own for an issuer that publishes its keys', () => {
    const [jwks, issuer] = [{ keys: [] }, 'https://token.actions.githubusercontent.com']
    expect(doubtsAbout({ issuer, jwks })).toEqual([
      expect.stringMatching(/^its tokens are verified with the keys in jwks/),
    ])
    expect(doubtsAbout({ issuer, jwks: null })).toEqual([])
    expect(doubtsAbout({ issuer: 'https://gitlab.example.com', jwks })).toEqual([])
  })

  test('a rule without a doubt takes no token of a pull request', () => {
    const pulls = [
      githubClaims({
        sub: 'repo:acme/shop:pull_request',
        ref: 'refs/pull/7/merge',
        event_name: 'pull_request',
        ref_protected: 'false',
      }),
      githubClaims({ event_name: 'pull_request_target' }),
      gitlabClaims({
        sub: 'project_path:acme/shop:ref_type:branch:ref:fix',
        ref: 'fix',
        pipeline_source: 'merge_request_event',
        ref_protected: 'false',
      }),
    ]
    fc.assert(
      fc.property(
        fc
          .constantFrom(...pulls)
          .chain((pull) =>
            fc.tuple(
              fc.constant(pull),
              fc.subarray(
                ['sub', 'repository', 'project_path', 'ref', 'event_name', 'pipeline_source', 'ref_protected'],
                { minLength: 1 },
              ),
              fc.boolean(),
            ),
          ),
        ([pull, names, isStarred]) => {
          const texts = names.flatMap((each) => (typeof pull[each] === 'string' ? [[each, pull[each]] as const] : []))
          const wanted = Object.fromEntries(
            texts.map(([each, text]) => [each, isStarred ? text.replace(/(?<=[^*][/:])[^/:]+$/, '*') : text]),
          )
          const rules = [rule({ claims: wanted })]
          // A rule for one branch or pull request by its name is as its author means it.
          const isNamed = /^fix$|^refs.pull.7\//.test(`${wanted.ref}`) || `${wanted.sub}`.endsWith(':fix')
          if (ruleFor(rulesOf(rules), pull) !== undefined && !isNamed)
            expect(doubtsAbout({ rules }), JSON.stringify(wanted)).toHaveLength(1)
        },
      ),
    )
  })
})
