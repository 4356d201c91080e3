import { rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openClient } from '../../src/cli/client.ts'
import { findIdToken } from '../../src/cli/id-token.ts'
import { openOutput } from '../../src/cli/output.ts'
import { submitterOf } from '../../src/cli/runs.ts'
import {
  adminToken,
  applied,
  atEnd,
  type Claims,
  exited,
  freePort,
  freshFolder,
  githubClaims,
  gitlabClaims,
  installation,
  run,
  startIssuer,
} from '../support/kit.ts'

/** The program finds the identity token of its job, and exchanges it for access tokens of the service. */

const folder = freshFolder()
const issuer = await startIssuer()
const other = await startIssuer()
const on = await installation({ privateIssuers: [issuer.url] })
const address = await on.app.listen({ port: 0, host: '127.0.0.1' })
const member = await on.make.user({ permissions: ['add_group', 'view_group'] })
const job = githubClaims()
await issuer.job(job)

await applied(
  on.admin.apply([
    {
      model: 'service_rbac.trustedissuer',
      identifiers: { name: 'ci' },
      attrs: {
        issuer: issuer.url,
        audience: address,
        rules: [
          { name: 'github', claims: { repository: 'acme/shop', ref: 'refs/heads/main' }, user: member.username },
          { name: 'gitlab', claims: { project_path: 'acme/shop' }, user: member.username, owners: ['team-a'] },
        ],
      },
    },
  ]),
)

type Env = Record<string, string>

const start = (args: string[], env: Env = {}) =>
  run('bin/gatewright.mjs', { args, env: { GATEWRIGHT_URL: address, DATA_DIR: folder, ...env } })

async function gatewright(args: string[], env: Env = {}) {
  const running = start(args, env)
  const { code } = await running.exited
  return { code, output: running.output() }
}

const check = (env: Env, ...args: string[]) => gatewright(['token', 'check', ...args], env)

function file(name: string, content: string): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const group = (name: string) =>
  file(`${name}.yaml`, `version: 1\nentries:\n  - { model: service_core.group, identifiers: { name: ${name} } }\n`)

const signed = (claims: Claims = {}) => issuer.sign({ ...gitlabClaims(), aud: address, ...claims })
const exchanges = () => on.db.exchangedToken.count()

/** The address of a server that passes all on, some of it to other paths, and changes this text in answers. */
async function altering(was: string, is: string, pathOf = (url: string) => url): Promise<string> {
  const server = createServer(async (request, reply) => {
    const { method = 'GET', url = '/', headers } = request
    const body = method === 'GET' ? null : await text(request)
    const { 'content-type': type = '', authorization = '' } = headers
    const answer = await fetch(`${address}${pathOf(url)}`, {
      method,
      body,
      headers: { 'content-type': type, authorization },
    })
    const content = (await answer.text()).replace(was, is)
    const { etag = '', 'content-location': run = '' } = Object.fromEntries(answer.headers)
    reply.writeHead(answer.status, { etag, 'content-location': run }).end(content)
  })
  atEnd(async () => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('a job has', () => {
  test('the endpoint of GitHub Actions, which is asked for a token for this service', async () => {
    const { output } = await exited(0, check(issuer.github))
    expect(output.replace(/(?<=^expires +)\S+/m, 'TIME')).toBe(`\
from        the identity token of GitHub Actions (ACTIONS_ID_TOKEN_REQUEST_URL), exchanged
user        ${member.username}
expires     TIME
issuer      ci
rule        github
subject     repo:acme/shop:ref:refs/heads/main
repository  acme/shop
ref         refs/heads/main
commit      ${job.sha}
job         ${job.run_id}
job url     ${issuer.url}/acme/shop/actions/runs/${job.run_id}
actor       ann
`)
  })

  test('the variable of GitLab', async () => {
    const env = { GATEWRIGHT_ID_TOKEN: await signed() }
    const { output } = await exited(0, check(env))
    expect(output).toMatch(/^from {8}the identity token in GATEWRIGHT_ID_TOKEN, exchanged$/m)
    expect(output).toMatch(/^bound to {4}owner team-a$/m)
    const json = JSON.parse((await exited(0, check(env, '--json'))).output)
    expect(json).toMatchObject({
      from: 'the identity token in GATEWRIGHT_ID_TOKEN, exchanged',
      ...{ identifier: null, user: member.username, bound_to: { owners: ['team-a'], stacks: [] } },
      pipeline: { issuer: 'ci', rule: 'gitlab', repository: 'acme/shop', job: '302' },
    })
  })

  test('a file', async () => {
    const env = { GATEWRIGHT_ID_TOKEN_FILE: file('id-token', `${await signed()}\n`) }
    await exited(0, check(env), /^from {8}the identity token in GATEWRIGHT_ID_TOKEN_FILE, exchanged$/m)
  })

  test('the projected file of a pod, which is read each time', async () => {
    const projected = file('projected', 'one\n')
    const found = await findIdToken(address, () => expect.fail('nothing is asked'), projected)
    expect(found?.from).toBe(`the identity token in ${projected}`)
    expect(await found?.read(1_000)).toBe('one')
    file('projected', 'another\n')
    expect(await found?.read(1_000)).toBe('another')
    expect(await findIdToken(address, () => expect.fail('nothing is asked'), join(folder, 'none'))).toBeNull()
  })

  test('none: the message has what to do', async () => {
    const { output } = await exited(1, gatewright(['runs']))
    expect(output).toMatch(
      /^No access token: set GATEWRIGHT_TOKEN.*, or DATA_DIR to where .*id-token: write.*id_tokens/,
    )
  })
})

test('a stored token comes first, then GATEWRIGHT_ID_TOKEN, then the token of this machine, then GitHub', async () => {
  const own = freshFolder()
  writeFileSync(join(own, 'admin-token'), adminToken)
  const env = { ...issuer.github, GATEWRIGHT_ID_TOKEN: await signed(), GATEWRIGHT_TOKEN: adminToken, DATA_DIR: own }
  const from = async (less: Env) =>
    JSON.parse((await exited(0, check({ ...env, ...less }, '--json'))).output).from as string
  expect(await from({})).toBe('GATEWRIGHT_TOKEN')
  expect(await from({ GATEWRIGHT_TOKEN: '' })).toContain('GATEWRIGHT_ID_TOKEN')
  expect(await from({ GATEWRIGHT_TOKEN: '', GATEWRIGHT_ID_TOKEN: '' })).toBe(join(own, 'admin-token'))
  expect(await from({ GATEWRIGHT_TOKEN: '', GATEWRIGHT_ID_TOKEN: '', DATA_DIR: folder })).toContain('GitHub Actions')
})

test('the audience for GitHub is the one that is set', async () => {
  const { output } = await exited(1, check({ ...issuer.github, GATEWRIGHT_AUDIENCE: 'another' }))
  expect(output).toContain('"aud":"another"')
})

describe('--verbose', () => {
  test('says once for each exchange which token is used, and until when', async () => {
    const { output } = await exited(0, gatewright(['runs', '--verbose'], issuer.github))
    expect(output).toMatch(
      /^token: the identity token of GitHub Actions \(ACTIONS_ID_TOKEN_REQUEST_URL\), exchanged; expires \d{4}-\S+Z\n$/,
    )
  })

  test('of a stored token says where it is', async () => {
    const { output } = await exited(
      0,
      gatewright(['runs', '--limit', '1', '--verbose'], { GATEWRIGHT_TOKEN: adminToken }),
    )
    expect(output).toMatch(/^token: GATEWRIGHT_TOKEN\n/)
  })

  test('never shows a token', async () => {
    const jwt = await signed()
    const [running, refused] = await Promise.all([
      check({ GATEWRIGHT_ID_TOKEN: jwt }, '--verbose'),
      check({ GATEWRIGHT_ID_TOKEN: await signed({ project_path: 'other/shop' }) }, '--verbose'),
    ])
    for (const { output } of [running, refused]) expect(output).not.toMatch(/gw_a_|eyJ/)
  })
})

describe('long work', () => {
  /** Follows a run that is held, with a token from this file, and says when it waits. */
  async function following(name: string) {
    const env = { GATEWRIGHT_ID_TOKEN_FILE: file(name, await signed()) }
    const release = on.hold()
    const recorded = await gatewright(['apply', group(name), '--no-wait'], env)
    const [id = ''] = /[\da-f-]{36}/.exec(recorded.output) ?? [recorded.output]
    const running = start(['logs', '-f', id, '--verbose', '--timeout', '60'], env)
    await running.line(/^waiting: run /, { withinMs: 20_000 }).finally(() => on.db.exchangedToken.deleteMany())
    return { running, release }
  }

  test('goes on when its access token is gone, with another exchange of what the file has then', async () => {
    const { running, release } = await following('long-work')
    file('long-work', await signed({ job_id: '303' }))
    release()
    expect(await running.exited).toMatchObject({ code: 0 })
    expect(running.output()).toMatch(/: applied$/m)
    expect(running.output().match(/^token: /gm)).toHaveLength(2)
    const tokens = await on.db.exchangedToken.findMany()
    expect(tokens.map(({ pipeline }) => pipeline)).toMatchObject([{ job: '303' }])
  })

  test('ends with the reason when there is no identity token any more', async () => {
    const { running, release } = await following('ends')
    rmSync(join(folder, 'ends'))
    release()
    expect(await running.exited).toMatchObject({ code: 1 })
    expect(running.output()).toMatch(/^ +GATEWRIGHT_ID_TOKEN_FILE: \S+ cannot be read/m)
  })

  test('has another access token before the one that it has ends', async () => {
    const GATEWRIGHT_URL = await altering('"expires_in":900', '"expires_in":0.001')
    const before = await exchanges()
    const env = { GATEWRIGHT_ID_TOKEN: await signed(), GATEWRIGHT_URL }
    // A plan is two requests.
    await exited(2, gatewright(['plan', group('renewed')], env))
    expect(await exchanges()).toBe(before + 2)
  })

  test('has one exchange for all of its requests, also for those at the same time', async () => {
    const before = await exchanges()
    await exited(2, gatewright(['plan', group('planned')], issuer.github))
    expect(await exchanges()).toBe(before + 1)
    for (const [name, value] of Object.entries({ GATEWRIGHT_URL: address, GATEWRIGHT_ID_TOKEN: await signed() }))
      vi.stubEnv(name, value)
    onTestFinished(() => void vi.unstubAllEnvs())
    const client = await openClient(openOutput(), {}, 30_000)
    const answers = await Promise.all([1, 2, 3].map(() => client.send('GET', '/core/users/me/')))
    expect(answers).toMatchObject([{ status: 200 }, { status: 200 }, { status: 200 }])
    expect(await exchanges()).toBe(before + 2)
  })
})

describe('no access token', () => {
  test('is given for a token that no rule fits: the message has what was sent, and who knows more', async () => {
    const { output } = await exited(
      1,
      check({ GATEWRIGHT_ID_TOKEN: await signed({ project_path: 'a/b', sub: 'x\u202ey' }) }),
    )
    expect(output).toContain(`${address} answered 401 to the identity token in GATEWRIGHT_ID_TOKEN: `)
    expect(output).toContain(`"iss":"${issuer.url}","aud":"${address}","sub":"x\\u202ey","exp":"`)
    expect(output).toContain(` Operators see why at ${address}/admin/refusals/. It says {`)
    expect(output.match(/admin\/refusals/g)).toHaveLength(1)
  })

  test.each([
    ['no JWT', { GATEWRIGHT_ID_TOKEN: 'nonsense' }, / It is no JWT: an access token belongs in GATEWRIGHT_TOKEN\.\n$/],
    ['a giant', { GATEWRIGHT_ID_TOKEN: 'a'.repeat(20_000) }, / answered 4\d\d to the identity token/],
    ['an empty file', { GATEWRIGHT_ID_TOKEN_FILE: file('empty', '') }, /GATEWRIGHT_ID_TOKEN_FILE: \S+ is empty/],
    [
      'another URL',
      { ACTIONS_ID_TOKEN_REQUEST_URL: 'http://x.example/', ACTIONS_ID_TOKEN_REQUEST_TOKEN: 't' },
      /https/,
    ],
    ['another job', { ...issuer.github, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'x' }, / gives no identity token \(401\)/],
  ])('is got with %s', async (_, env: Env, output) => {
    const { code, output: found } = await check(env, '--timeout', '1')
    expect(found).toMatch(output)
    expect(code).not.toBe(0)
  })

  test('is given by a service that is older: the message has what to do', async () => {
    const GATEWRIGHT_URL = await altering('', '', (url) => url.replace('/auth/token/', '/unknown/'))
    const { output } = await exited(1, check({ GATEWRIGHT_ID_TOKEN: await signed(), GATEWRIGHT_URL }))
    expect(output).toBe(
      `${GATEWRIGHT_URL} exchanges no identity tokens: it is older than this program. Set GATEWRIGHT_TOKEN.\n`,
    )
  })

  test('is asked for at a wrong address: the message has what to set', async () => {
    const GATEWRIGHT_URL = `${address}/gatewright`
    await exited(
      3,
      check({ GATEWRIGHT_ID_TOKEN: await signed(), GATEWRIGHT_URL }),
      `${GATEWRIGHT_URL}/api/v3/auth/token/ answered 404, and is no path of Gatewright: set GATEWRIGHT_URL`,
    )
  })

  test.each([
    ['mac', 3],
    ['bearer', 0],
  ])('is sent that has the type %j: exit code %i', async (type, code) => {
    const GATEWRIGHT_URL = await altering('"Bearer"', JSON.stringify(type))
    await exited(code, check({ GATEWRIGHT_ID_TOKEN: await signed(), GATEWRIGHT_URL }))
  })

  test('is waited for as long as the service, or GitHub, is away', async () => {
    const away = `http://127.0.0.1:${await freePort()}`
    const id = { GATEWRIGHT_ID_TOKEN: await signed() }
    const path = group('away')
    await exited(
      3,
      gatewright(['apply', path, '--timeout', '1'], { ...id, GATEWRIGHT_URL: away }),
      /Nothing was applied/,
    )
    const github = { ...issuer.github, ACTIONS_ID_TOKEN_REQUEST_URL: `${away}/?a=b` }
    await exited(3, gatewright(['apply', path, '--timeout', '1'], github), /unreachable .*\n.*ECONNREFUSED/)
    expect(await on.db.group.count({ where: { name: 'away' } })).toBe(0)
  })

  test.each(['9e15', '86401', '0', '-1', '1e300'])('is sent that lasts for %s seconds', async (seconds) => {
    const GATEWRIGHT_URL = await altering('"expires_in":900', `"expires_in":${seconds}`)
    const { output } = await exited(3, check({ GATEWRIGHT_ID_TOKEN: await signed(), GATEWRIGHT_URL }))
    expect(output).toMatch(/^\S+ answered 200 to the identity token .* is not one of Gatewright\.\n$/)
  })

  test('is sent that no header can have: it is not shown', async () => {
    const GATEWRIGHT_URL = await altering('"access_token":"', '"access_token":"SECRET\\n')
    const { output } = await exited(3, check({ GATEWRIGHT_ID_TOKEN: await signed(), GATEWRIGHT_URL }))
    expect(output).toMatch(/^\S+ answered 200 to the identity token .* is not one of Gatewright\.\n$/)
  })

  test.each([
    ['GATEWRIGHT_TOKEN', { GATEWRIGHT_TOKEN: 'SECRET\nx: y' }],
    ['GATEWRIGHT_TOKEN', { GATEWRIGHT_TOKEN_FILE: file('two-lines', 'SECRET\nx\n') }],
    ['GATEWRIGHT_ID_TOKEN', { GATEWRIGHT_ID_TOKEN: 'SECRET\nx' }],
    ['ACTIONS_ID_TOKEN_REQUEST_TOKEN', { ...issuer.github, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'SECRET\u007fx' }],
  ])('is got with a %s of several lines or other characters: it is not shown', async (setting, env: Env) => {
    const { output } = await exited(1, check(env))
    expect(output).toBe(
      `The settings are not valid:\n  ${setting} holds a character that no token has, such as a blank or a line break.\n`,
    )
  })

  test('is read from a file of this machine that has other text: it is not shown', async () => {
    const own = freshFolder()
    writeFileSync(join(own, 'admin-token'), 'SECRET\nx')
    const { output } = await exited(1, check({ DATA_DIR: own }))
    expect(output).toBe(`${join(own, 'admin-token')} holds no access token.\n`)
  })

  test('is asked for on a connection that others may read', async () => {
    const env = { GATEWRIGHT_URL: 'http://gatewright.example', GATEWRIGHT_ID_TOKEN: await signed() }
    await exited(1, gatewright(['runs'], env), /unencrypted: use https/)
  })
})

describe('a redirect is not followed, and no secret goes to the other host', () => {
  const statuses = [301, 302, 303, 307, 308]
  /** Expects that this path of the issuer, which redirects, is asked, and the other one never. */
  async function redirected(path: string, status: number, env: Env): Promise<string> {
    const [asked, place] = [await issuer.requests(path), `/stolen-${status}`]
    await issuer.answer(path, { redirect: `${other.url}${place}`, status })
    const { output } = await exited(3, check(env, '--timeout', '1'))
    await issuer.answer(path)
    expect(await issuer.requests(path)).toBe(asked + 1)
    expect(await other.requests(place)).toBe(0)
    expect(output.startsWith(`${issuer.url} cannot be used (unexpected redirect): it redirects`)).toBe(true)
    return output
  }
  const advice = ': set GATEWRIGHT_URL to the address it redirects to.\n'

  test.each(statuses)('%i of the service, for an identity token and a stored one', async (status) => {
    const at = { GATEWRIGHT_URL: issuer.url }
    const env = { ...at, GATEWRIGHT_ID_TOKEN: await signed() }
    for (const [method, more] of [
      ['exchange', env],
      ['stored', { ...at, GATEWRIGHT_TOKEN: adminToken }],
    ] as const)
      expect(await redirected('/api/v3/auth/token/', status, more), method).toContain(advice)
  })

  test.each(statuses)('%i of the endpoint of GitHub, which has another address than the service', async (status) => {
    expect(await redirected('/github/token', status, issuer.github)).not.toContain('GATEWRIGHT_URL')
  })
})

test('claims of several lines are one line each', async () => {
  const lines = {
    ref: '::error::x\n',
    sha: '\u001b[31mX\n::set-output name=a::b\r',
    actor: '\u202eeve\n::y',
    sub: 'a\n::z',
  }
  const id = { GATEWRIGHT_ID_TOKEN: await signed(lines) }
  await exited(0, gatewright(['apply', '--stack', 'of-lines', group('of-lines')], id))
  const outputs = [check(id), gatewright(['runs', '--limit', '1'], id), gatewright(['stack', 'show', 'of-lines'], id)]
  for (const { output } of await Promise.all(outputs)) {
    expect(output).toContain('::error::x')
    expect(output).not.toMatch(/^::/m)
    for (const each of ['\r', '\u001b', '\u202e']) expect(output).not.toContain(each)
  }
})

test('stack show has the commit of the last run', async () => {
  const id = { GATEWRIGHT_ID_TOKEN: await signed({ sha: 'e'.repeat(40) }) }
  await exited(0, gatewright(['apply', '--stack', 'of-a-job', group('in-a-stack')], id))
  const { output } = await exited(0, gatewright(['stack', 'show', 'of-a-job'], id))
  expect(output).toMatch(/\n {2}last run {4}\S{36} {2}acme\/shop main e{10}\n/)
})

test('runs --commit lists the runs of the jobs of a commit', async () => {
  const commit = 'c'.repeat(40)
  const id = { GATEWRIGHT_ID_TOKEN: await signed({ sha: commit }) }
  await exited(0, gatewright(['apply', group('of-the-commit')], id))
  await exited(0, gatewright(['apply', group('of-another')], { GATEWRIGHT_ID_TOKEN: await signed() }))
  const { output } = await exited(0, gatewright(['runs', '--commit', commit], id))
  expect(output).toMatch(/^\S+ {2}\S+ {2}applied +apply .* of-the-commit \(.*, acme\/shop main c{10}\)\n$/)
  expect(output).not.toContain('of-another')
  const none = await exited(0, gatewright(['runs', '--commit', 'd'.repeat(40)], id))
  expect(none.output).toBe('')
})

describe('validate', () => {
  const trusted = (rule: object) =>
    file(
      'trusted.json',
      JSON.stringify({
        version: 1,
        entries: [
          {
            model: 'service_rbac.trustedissuer',
            identifiers: { name: 'ci' },
            attrs: { issuer: 'https://ci.example.com', audience: 'x', rules: [{ name: 'shop', user: 'ci', ...rule }] },
          },
        ],
      }),
    )
  const offline = { GATEWRIGHT_URL: 'http://127.0.0.1:1' }

  test('takes a trusted issuer, without a service', async () => {
    const path = trusted({ claims: { repository: 'acme/shop', ref: 'refs/heads/main' } })
    await exited(0, gatewright(['validate', path], offline), 'valid')
  })

  test('refuses a rule that says of no job whose it is, at its place', async () => {
    const { output } = await exited(
      1,
      gatewright(['validate', trusted({ claims: { ref: 'refs/heads/main' } })], offline),
    )
    expect(output).toMatch(/trusted\.json.*rules.*claims/s)
  })
})

const shop = { repository: 'acme/shop', ref: 'refs/heads/main', commit: '1f494652e00217d817ba7b238355d8e855304443' }
test.each([
  [{ submitter_name: 'ada' }, 'ada'],
  [{ submitter_name: null, pipeline: null }, 'service'],
  [{ submitter_name: 'ci', pipeline: shop }, 'ci, acme/shop refs/heads/main 1f494652e0'],
  [{ submitter_name: 'ci', pipeline: { ...shop, ref: null, commit: null } }, 'ci, acme/shop'],
])('%j was submitted by %s', (run, words) => {
  expect(submitterOf(run)).toBe(words)
})
