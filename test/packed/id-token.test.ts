import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import {
  applied,
  type Claims,
  exited,
  freshFolder,
  githubClaims,
  gitlabClaims,
  type Installation,
  type Issuer,
  installation,
  kubernetesClaims,
  named,
  run,
  startIssuer,
} from '../support/kit.ts'
import { installCli, installNodes, type Nodes } from '../support/packed-cli.ts'

/** Jobs without any secret plan and apply by the packed program. The test plays the issuers of GitHub, GitLab and Kubernetes. */

const folder = freshFolder()
let on: Installation
let address: string
let github: Issuer
let gitlab: Issuer
let kubernetes: Issuer
let nodes: Nodes
let program: string

beforeAll(async () => {
  ;[github, gitlab, kubernetes] = await Promise.all([startIssuer(), startIssuer(), startIssuer()])
  on = await installation({ privateIssuers: [github.url, gitlab.url] })
  address = await on.app.listen({ port: 0, host: '127.0.0.1' })
  program = await installCli(folder)
  nodes = await installNodes()
  const account = await on.make.user({ permissions: deployer })
  const trusted = (name: string, issuer: Issuer, claims: Claims, more: object = {}) => ({
    model: 'service_rbac.trustedissuer',
    identifiers: { name },
    attrs: {
      ...{ issuer: issuer.url, audience: address, ...more },
      rules: [{ name: 'shop', claims, user: account.username, owners: ['team-a'] }],
    },
  })
  await applied(
    on.admin.apply([
      trusted('github', github, { repository: 'acme/shop', ref: 'refs/heads/main' }),
      trusted('gitlab', gitlab, { project_path: 'acme/shop', ref: 'main', ref_protected: 'true' }),
      // The service does not reach the API of the cluster.
      trusted('kubernetes', kubernetes, { sub: pod.sub }, { issuer: cluster, jwks: await kubernetes.jwks() }),
    ]),
  )
}, 300_000)

const cluster = 'https://kubernetes.default.svc.cluster.local'
const pod = kubernetesClaims()

const deployer = [
  ...['add_application', 'change_application', 'view_application'],
  ...['add_oauth2provider', 'change_oauth2provider', 'view_oauth2provider'],
]

/** What a job of each system has in its environment, beside the address of the service: no token of it. */
const environments: Readonly<Record<string, (claims?: Claims) => Promise<Record<string, string>>>> = {
  async github(claims) {
    await github.job(githubClaims(claims))
    return { ...github.github, GITHUB_ACTIONS: 'true' }
  },
  gitlab: async (claims) => ({
    GITLAB_CI: 'true',
    GATEWRIGHT_ID_TOKEN: await gitlab.sign({ ...gitlabClaims(), aud: address, ...claims }),
  }),
  async kubernetes(claims) {
    const volume = freshFolder()
    const token = await kubernetes.sign({ ...pod, iss: cluster, aud: [address], ...claims })
    writeFileSync(join(volume, 'token'), token)
    writeFileSync(join(volume, 'mount.cjs'), mounts(volume))
    return { NODE_OPTIONS: `--require ${join(volume, 'mount.cjs')}` }
  },
}

/** What shows a program the volume where a pod has it: a test cannot mount one. */
const mounts = (volume: string) => `const fs = require('node:fs')
for (const name of ['existsSync', 'readFileSync']) {
  const real = fs[name]
  const mounted = (path) => (path === '/var/run/secrets/gatewright/token' ? ${JSON.stringify(join(volume, 'token'))} : path)
  fs[name] = (path, ...rest) => real(mounted(path), ...rest)
}
require('node:module').syncBuiltinESMExports()
`

const known: Readonly<Record<string, string>> = {
  github: `commit +${githubClaims().sha}`,
  gitlab: `commit +${gitlabClaims().sha}`,
  kubernetes: `subject +${pod.sub}`,
}

test.each(Object.keys(known).flatMap((system) => ['18', '26'].map((major) => [system, major] as const)))(
  'a job of %s plans and applies, on Node %s',
  async (system, major) => {
    const slug = `${system}-${major}`
    const path = join(folder, `${slug}.json`)
    writeFileSync(path, JSON.stringify(await named('oauth2', slug)))
    const env = { ...(await environments[system]?.()), CI: 'true', GATEWRIGHT_URL: address, GATEWRIGHT_OWNER: 'team-a' }
    const gatewright = async (...args: string[]) => {
      const running = run(program, { args, env, cwd: folder, node: nodes[major] ?? '' })
      return { ...(await running.exited), output: running.output() }
    }
    const count = () => on.db.application.count({ where: { slug, owner: 'team-a' } })
    await exited(2, gatewright('plan', path, '--out', `${slug}.plans`), '2 to add, 0 to change, 0 to delete')
    expect(await count()).toBe(0)
    const { output } = await exited(0, gatewright('apply', path, '--plan-file', `${slug}.plans`, '--verbose'))
    expect(output).toMatch(/^token: the identity token [^\n]*, exchanged; expires \S+Z$/m)
    expect(await count()).toBe(1)
    await exited(0, gatewright('token', 'check'), new RegExp(`^${known[system]}$`, 'm'))
    expect(output).not.toMatch(/gw_a_|eyJ/)
  },
)

test.each(Object.keys(known))('another job of %s is refused', async (system) => {
  const other = { ref: 'refs/heads/fork', sub: 'of a fork' }
  const env = { ...(await environments[system]?.(other)), GATEWRIGHT_URL: address }
  const running = run(program, { args: ['runs'], env, cwd: folder })
  expect(await running.exited).toMatchObject({ code: 1 })
  expect(running.output()).toMatch(/\/admin\/refusals\/.*"sub":"of a fork"/)
})
