import type { JSONWebKeySet } from 'jose'
import { atEnd } from './at-end.ts'
import { run } from './processes.ts'

/** Claims of a token; null takes away one that it has by itself. */
export type Claims = Readonly<Record<string, unknown>>

export type HowToSign = {
  /** Of a key that there is or was: that one signs. Another text: the newest signs, under this name. null: no `kid`. */
  readonly kid?: string | null
  /** Without it that of the key. `none` signs nothing; `HS256` has the PEM text of the public key as its secret. */
  readonly alg?: string
  /** Seconds from now, which may be negative. */
  readonly expiresIn?: number
  readonly issuedIn?: number
  /** Beside `typ`, `alg` and `kid`: `{ jku: 'https://other.example/jwks' }` */
  readonly header?: Readonly<Record<string, unknown>>
}

/** What a path answers instead of what it should. */
export type HowToAnswer =
  | { readonly json: unknown; readonly status?: number }
  | { readonly body: string; readonly status?: number }
  | { readonly redirect: string; readonly status?: number }
  /** A request without an answer, an answer a byte at a time, one that never ends, or one that leaves HTTP. */
  | { readonly sends: 'nothing' | 'slowly' | 'endless' | 'upgrade' }

export type Issuer = {
  /** `http://127.0.0.1:4711`: the `iss` of its tokens */
  readonly url: string
  /** A JWT: `{ iss, aud: 'gatewright', sub: 'job', iat, exp (5 minutes), jti }` and these claims. */
  sign(claims?: Claims, how?: HowToSign): Promise<string>
  /** Makes a new key. @param keep false: the key set has this one alone @returns its `kid` */
  rotate(how?: { keep?: boolean; alg?: 'RS256' | 'PS256' | 'ES256' | 'EdDSA' }): Promise<string>
  jwks(): Promise<JSONWebKeySet>
  /** How often a path was asked for, such as `/jwks`. */
  requests(path: string): Promise<number>
  /** Makes a path answer otherwise, or (without `how`) as it should again. */
  answer(path: string, how?: HowToAnswer): Promise<void>
  /** The claims of the tokens from GitHub's endpoint, which is at `/github/token`. */
  job(claims: Claims): Promise<void>
  /** What GitHub gives to a job that may ask for tokens. */
  readonly github: { readonly ACTIONS_ID_TOKEN_REQUEST_URL: string; readonly ACTIONS_ID_TOKEN_REQUEST_TOKEN: string }
}

export const discoveryPath = '/.well-known/openid-configuration'

/** A real OpenID issuer in a process of its own, with one key. Its key set is at `/jwks`. It ends after the test file. */
export async function startIssuer(): Promise<Issuer> {
  const running = run('test/support/issuer-program.ts')
  atEnd(async () => void (await running.stop()))
  const [, url = ''] = await running.line(/^(\S+) listens$/)
  const control = async <Result>(path: string, body: unknown): Promise<Result> => {
    const answer = await fetch(`${url}/control/${path}`, { method: 'POST', body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`)
    return (await answer.json()) as Result
  }
  return {
    url,
    sign: (claims = {}, how = {}) => control('sign', [claims, how]),
    rotate: (how = {}) => control('rotate', how),
    jwks: () => control('jwks', {}),
    requests: async (path) => (await control<Record<string, number>>('requests', {}))[path] ?? 0,
    answer: async (path, how) => void (await control('answer', how === undefined ? [path] : [path, how])),
    job: async (claims) => void (await control('job', claims)),
    github: {
      ACTIONS_ID_TOKEN_REQUEST_URL: `${url}/github/token?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'request-token',
    },
  }
}

/** As GitHub Actions signs them, for a push to the main branch of acme/shop. */
export const githubClaims = (more: Claims = {}): Claims => ({
  sub: 'repo:acme/shop:ref:refs/heads/main',
  ref: 'refs/heads/main',
  sha: '1f494652e00217d817ba7b238355d8e855304443',
  repository: 'acme/shop',
  repository_owner: 'acme',
  repository_owner_id: '4711',
  repository_id: '81234',
  repository_visibility: 'private',
  run_id: '1234567890',
  run_number: '42',
  run_attempt: '1',
  actor: 'ann',
  actor_id: '99',
  workflow: 'deploy',
  workflow_ref: 'acme/shop/.github/workflows/deploy.yml@refs/heads/main',
  workflow_sha: '1f494652e00217d817ba7b238355d8e855304443',
  job_workflow_ref: 'acme/shop/.github/workflows/deploy.yml@refs/heads/main',
  job_workflow_sha: '1f494652e00217d817ba7b238355d8e855304443',
  head_ref: '',
  base_ref: '',
  event_name: 'push',
  ref_protected: 'true',
  ref_type: 'branch',
  runner_environment: 'github-hosted',
  ...more,
})

/** As GitLab signs the `id_tokens` of a job, for a push to the main branch of acme/shop. */
export const gitlabClaims = (more: Claims = {}): Claims => ({
  sub: 'project_path:acme/shop:ref_type:branch:ref:main',
  project_id: '22',
  project_path: 'acme/shop',
  namespace_id: '72',
  namespace_path: 'acme',
  user_id: '1',
  user_login: 'ann',
  user_email: 'ann@acme.example',
  pipeline_id: '574',
  pipeline_source: 'push',
  job_id: '302',
  ref: 'main',
  ref_type: 'branch',
  ref_path: 'refs/heads/main',
  ref_protected: 'true',
  sha: '714a629c0b401fdce83e847fc9589983fc6f46bc',
  runner_id: 1,
  runner_environment: 'gitlab-hosted',
  project_visibility: 'private',
  user_access_level: 'maintainer',
  ci_config_ref_uri: 'gitlab.example/acme/shop//.gitlab-ci.yml@refs/heads/main',
  ci_config_sha: '714a629c0b401fdce83e847fc9589983fc6f46bc',
  ...more,
})

/** As Kubernetes signs the projected token of a pod's service account. */
export const kubernetesClaims = (more: Claims = {}): Claims => ({
  sub: 'system:serviceaccount:ci:deployer',
  'kubernetes.io': {
    namespace: 'ci',
    node: { name: 'node-1', uid: 'c0a8b5e4-9d2f-4a3c-8b1e-5f6a7b8c9d0e' },
    pod: { name: 'deploy-x7k2p', uid: '6e3a1c52-7b48-4d0f-9c2a-1e5b8d7f4a60' },
    serviceaccount: { name: 'deployer', uid: '3f9b2d17-8c64-4e5a-a1d0-7c4e6f8b9a25' },
  },
  ...more,
})
