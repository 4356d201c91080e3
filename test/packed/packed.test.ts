import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { behindTls } from '../support/behind-tls.ts'
import { httpProxy } from '../support/http-proxy.ts'
import { type Installation, installation } from '../support/installation.ts'
import { adminToken, exited, freshFolder, named, plainEnvironment, run } from '../support/kit.ts'
import { installCli, installNodes, type Nodes } from '../support/packed-cli.ts'

/** The tarball of the command line program, installed by npm in an empty folder, on each Node. It needs the registry. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = freshFolder()
const execute = promisify(execFile)

function sizeOf(path: string): number {
  const info = statSync(path)
  return info.isDirectory() ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0) : info.size
}

let on: Installation
let address: string
let nodes: Nodes
let program: string
beforeAll(async () => {
  on = await installation()
  address = await on.app.listen({ port: 0, host: '127.0.0.1' })
  program = await installCli(folder)
  nodes = await installNodes()
}, 300_000)

const tokens = { GATEWRIGHT_TOKEN: adminToken, OAUTH2_SECRET: 'a secret of the caller, of many letters' }

async function gatewright(major: string, args: string[], env: Record<string, string> = {}) {
  const running = run(program, {
    ...{ args, cwd: folder, node: nodes[major] ?? '' },
    env: { GATEWRIGHT_URL: address, ...tokens, ...env },
  })
  const { code } = await running.exited
  return { code, output: running.output() }
}

const runIn = (output: string) => /(?<=runs\/)[-\da-f]{36}/.exec(output)?.[0] ?? expect.fail(output)

test('the installation is one package of less than 3 MB, without sources', () => {
  expect(readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['gatewright-cli'])
  expect(sizeOf(join(folder, 'node_modules'))).toBeLessThan(3_000_000)
  const names = readdirSync(join(folder, 'node_modules', 'gatewright-cli')).sort()
  expect(names).toEqual(['LICENSE', 'LICENSES-OF-OTHERS', 'README.md', 'bin', 'package.json', 'schema.json'])
})

test('npx starts it', async () => {
  const { stdout } = await execute('npx', ['--no-install', 'gatewright', '--help'], {
    cwd: folder,
    env: plainEnvironment(),
  })
  expect(stdout).toMatch(/^gatewright COMMAND/)
})

/** The folder of the sign-in server has other files, too. */
const examples = ['.', 'sign-in']
  .flatMap((name) => readdirSync(join(root, 'examples', name)).map((file) => join(root, 'examples', name, file)))
  .filter((file) => file.endsWith('.yaml') || /examples\/[^/]+\.json$/.test(file))

describe.each(['18', '22', '26'])('Node %s', (major) => {
  const path = (name: string) => join(folder, `${major}-${name}`)
  const commands = new Map<string, () => Promise<void>>([
    [
      'validate',
      async () => {
        await exited(0, gatewright(major, ['validate', ...examples]), /^\d+ valid$/m)
        writeFileSync(
          path('bad.yaml'),
          'version: 1\nentries:\n  - { model: service_core.grup, identifiers: { name: x } }\n',
        )
        await exited(1, gatewright(major, ['validate', path('bad.yaml')]), /entries\.0\.model: /)
      },
    ],
    [
      'plan',
      async () => {
        const submission = await named('oauth2', `packed-${major}`)
        writeFileSync(path('app.json'), JSON.stringify(submission))
        writeFileSync(
          path('group.yaml'),
          `version: 1\nentries:\n  - { model: service_core.group, identifiers: { name: packed ${major} }, attrs: { attributes: { note: !Env OAUTH2_SECRET } } }\n`,
        )
        const planned = await gatewright(major, ['plan', path('app.json'), path('group.yaml'), '--out', path('plans')])
        expect(planned).toMatchObject({ code: 2, output: expect.stringMatching(/^\+ service_core\.application /m) })
        expect(await on.db.application.count({ where: { slug: `packed-${major}` } })).toBe(0)
      },
    ],
    [
      'apply',
      async () => {
        const files = [path('app.json'), path('group.yaml')]
        const summary = ['--summary', path('summary.md')]
        await exited(0, gatewright(major, ['apply', ...files, '--plan-file', path('plans'), ...summary]))
        expect(await on.db.application.count({ where: { slug: `packed-${major}` } })).toBe(1)
        const { attributes } = await on.db.group.findFirstOrThrow({ where: { name: `packed ${major}` } })
        expect(attributes).toEqual({ note: tokens.OAUTH2_SECRET })
      },
    ],
    [
      'plan --full',
      async () => {
        expect(await gatewright(major, ['plan', '--full', path('group.yaml')])).toMatchObject({ code: 0 })
        const changed = await gatewright(major, ['diff', path('group.yaml')], { OAUTH2_SECRET: 'another, as long' })
        expect(changed).toMatchObject({ code: 2, output: expect.stringContaining('+ attributes') })
      },
    ],
    [
      'import',
      async () => {
        expect(await gatewright(major, ['import', join(root, 'blueprints/bootstrap.yaml')])).toMatchObject({
          output: expect.stringMatching(/^# of \d+: /m),
        })
      },
    ],
    [
      'export',
      async () => {
        await exited(0, gatewright(major, ['export', '--out', path('all.yaml')]), /^\d+ entries, /)
        const again = await gatewright(major, ['export', '--only', 'application'])
        expect(again.output).toContain(`slug: packed-${major}`)
      },
    ],
    [
      'runs',
      async () => {
        const { code, output } = await gatewright(major, ['runs', '--limit', '5'])
        expect({ code, output }).toMatchObject({ code: 0, output: expect.stringMatching(/ applied +apply /) })
      },
    ],
    [
      'logs',
      async () => {
        await exited(0, gatewright(major, ['logs', '-f']), /: \w+\n$/)
        const release = on.hold()
        const recorded = await gatewright(major, ['apply', '--no-wait', path('group.yaml'), '--json'], {
          OAUTH2_SECRET: 'another value',
        })
        const followed = run(program, {
          ...{ args: ['logs', '-f', runIn(recorded.output)], cwd: folder, node: nodes[major] ?? '' },
          env: { GATEWRIGHT_URL: address, ...tokens },
        })
        await followed.line(/^waiting: run /)
        release()
        expect(await followed.exited).toMatchObject({ code: 0 })
        expect(followed.output()).toMatch(/: applied$/m)
      },
    ],
    [
      'runs cancel',
      async () => {
        const release = on.hold()
        const recorded = await gatewright(major, ['apply', '--no-wait', path('group.yaml'), '--json'], {
          OAUTH2_SECRET: 'a value that is never applied',
        })
        await exited(0, gatewright(major, ['runs', 'cancel', runIn(recorded.output)]), /: cancelled by /)
        release()
      },
    ],
    [
      'validate --schema',
      async () => {
        const { code, output } = await gatewright(major, ['validate', '--schema'])
        const shipped = readFileSync(join(folder, 'node_modules', 'gatewright-cli', 'schema.json'), 'utf8')
        expect({ code, output }).toEqual({ code: 0, output: shipped })
      },
    ],
    [
      'env',
      async () => {
        const { code, output } = await gatewright(major, ['env', `packed-${major}`, '--format', 'k8s-secret'])
        expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/_CLIENT_ID: "/) })
      },
    ],
    ['stack', async () => void (await exited(0, gatewright(major, ['stack'])))],
    ['rollback', async () => void (await exited(1, gatewright(major, ['rollback']), 'Name the stack'))],
    ['show', async () => void (await exited(0, gatewright(major, ['show', `packed-${major}`]), /^ {2}last run /m))],
    [
      'token',
      async () => {
        const { code, output } = await gatewright(major, ['token', 'create', `packed-${major}`])
        expect({ code, output }).toMatchObject({ code: 0, output: expect.stringMatching(/^gw_/) })
        expect(await on.db.token.count({ where: { identifier: `packed-${major}` } })).toBe(1)
      },
    ],
  ])

  test.each([...commands.keys()])('%s', (name) => commands.get(name)?.())

  test('through a proxy', async () => {
    const { port, authority } = await behindTls(address, 'gatewright.test')
    const { url, asked } = await httpProxy({ login: 'ada:secret' })
    const { code, output } = await gatewright(major, ['runs'], {
      GATEWRIGHT_URL: `https://gatewright.test:${port}`,
      NODE_EXTRA_CA_CERTS: authority,
      HTTPS_PROXY: url.replace('://', '://ada:secret@'),
    })
    expect({ code, output }).toEqual({ code: 0, output: expect.not.stringMatching(/warning|experimental/i) })
    expect(asked).toEqual([`gatewright.test:${port}`])
  })

  test('these are all commands', async () => {
    const { output } = await gatewright(major, ['--help'])
    const listed = [...output.matchAll(/^ {2}(\w+) {2,}\S/gm)].map(([, name]) => name)
    expect(new Set([...commands.keys()].map((name) => name.split(' ')[0]))).toEqual(new Set(listed))
  })
})
