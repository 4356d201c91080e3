import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { adminToken, atEnd, exited, freePort, freshFolder, installation, named, run, until } from '../support/kit.ts'

/** `gatewright validate`, `plan`, `apply` and `diff`, as processes, against a server that listens. */

const folder = freshFolder()
const on = await installation({ applyWaitMs: 1_000 })
const address = await on.app.listen({ port: 0, host: '127.0.0.1' })

type Ended = { code: number | null; output: string }

const start = (args: string[], env: Record<string, string> = {}) =>
  run('bin/gatewright.mjs', {
    args,
    env: { GATEWRIGHT_URL: address, GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder, ...env },
  })

async function gatewright(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  const running = start(args, env)
  const { code } = await running.exited
  return { code, output: running.output() }
}

function file(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const group = (name: string, attrs = '') =>
  `version: 1\nmetadata: { name: ${name} }\nentries:\n  - { model: service_core.group, identifiers: { name: ${name} }${attrs} }\n`

const countOf = (name: string) => on.db.group.count({ where: { name } })

describe('apply', () => {
  test('applies a submission and a blueprint; again, both are unchanged: 0', async () => {
    const paths = [file('a.json', await named('oauth2', 'cli-a')), file('b.yaml', group('cli-b'))]
    const first = await gatewright(['apply', '--each', ...paths])
    expect(first.output).toMatch(/^applied +\S+a\.json\n +provider oauth2 "cli-a" created .*\n/)
    expect(first.output).toMatch(/\n2 applied\n$/)
    expect(first.code).toBe(0)
    expect(await on.db.application.count({ where: { slug: 'cli-a' } })).toBe(1)
    expect((await exited(0, gatewright(['apply', '--each', ...paths]))).output).toMatch(
      /^unchanged +\S+a\.json\nunchanged +\S+b\.yaml\n0 added, 0 changed, 0 deleted, 3 unchanged\n2 unchanged\n$/,
    )
  })

  test('stops at the first file that is refused, and says why: 1', async () => {
    const bad = file('bad.yaml', group('cli-bad', ', attrs: { parnt: 1, is_superuser: 7 }'))
    const later = file('later.yaml', group('cli-later'))
    expect((await exited(1, gatewright(['apply', '--each', bad, later]))).output).toMatch(
      /^refused +\S+bad\.yaml \(400\)\n +\S+:4:75 entries\.0\.parnt: Unknown field\. Did you mean parent\?\n.*\n +\S+:4:85 entries\.0\.is_superuser: .*\n.*\nnot tried: 1 file\n1 refused, 1 not tried\n$/,
    )
    expect(await countOf('cli-later')).toBe(0)
  })

  test('sends nothing when one of the files cannot be read', async () => {
    const fine = file('fine.yaml', group('cli-fine'))
    const { code, output } = await gatewright(['apply', fine, file('broken.yaml', 'entries: [')])
    expect(code).toBe(1)
    expect(output).toMatch(/^refused [\s\S]*\nnot tried: 1 file\n/)
    expect(await countOf('cli-fine')).toBe(0)
  })

  test('waits for a run that takes longer than an answer: 0', async () => {
    const release = on.hold()
    const running = start(['apply', file('slow.yaml', group('cli-slow')), '--timeout', '30'])
    await running.line(/^waiting: /)
    release()
    expect(await running.exited).toMatchObject({ code: 0 })
    expect(running.output()).toMatch(/^applied +\S+slow\.yaml$/m)
    expect(await countOf('cli-slow')).toBe(1)
  })

  test('--no-wait ends when it is recorded, and says that the outcome is not known', async () => {
    const release = on.hold()
    const { code, output } = await gatewright(['apply', '--no-wait', file('async.yaml', group('cli-async'))])
    expect(output).toMatch(
      /^accepted +\S+async\.yaml\n +Recorded\. Its outcome is not known yet\.\n +gatewright logs -f [\da-f-]{36}\n$/,
    )
    expect(code).toBe(0)
    expect(await countOf('cli-async')).toBe(0)
    release()
    await until('the run to be applied', async () => (await countOf('cli-async')) === 1)
  })

  test('a plan that was reviewed is applied; one that no longer holds is refused', async () => {
    const path = file('reviewed.json', await named('oauth2', 'cli-reviewed'))
    const plans = ['--plan-file', join(folder, 'reviewed-plans.json')]
    await exited(2, gatewright(['plan', path, '--out', plans[1] ?? '']))
    expect(await gatewright(['apply', path, ...plans])).toMatchObject({ code: 0 })
    const json = JSON.parse((await gatewright(['apply', path, ...plans, '--json'])).output)
    expect(json.results).toMatchObject([
      { outcome: 'unchanged', logs: expect.arrayContaining([expect.stringContaining('it stands, applied by run ')]) },
    ])
    const other = await named('oauth2', 'cli-reviewed', { app: { group: 'Another' } })
    await gatewright(['apply', file('meanwhile.json', other)])
    await exited(1, gatewright(['apply', path, ...plans]), /^refused .* \(412\)\n.*changed after the plan/)
  })

  test('plan --out and apply --plan-file do the same for several', async () => {
    const paths = [file('pf-a.yaml', group('cli-pf-a')), file('pf-b.yaml', group('cli-pf-b'))]
    const tags = join(folder, 'plans.json')
    await exited(
      2,
      gatewright(['plan', '--each', ...paths, '--out', tags]),
      `\n+ service_core.group "cli-pf-b" (${paths[1]})\n`,
    )
    await exited(
      1,
      gatewright(['apply', '--each', ...paths, file('pf-c.yaml', group('cli-pf-c')), '--plan-file', tags]),
      /has no plan of \S+pf-c\.yaml/,
    )
    expect(await countOf('cli-pf-a')).toBe(0)
    await gatewright(['apply', file('meanwhile.yaml', group('cli-pf-b', ', attrs: { attributes: { a: 1 } }'))])
    const changed = [paths[0] ?? '', file('pf-b.yaml', group('cli-pf-b', ', attrs: { attributes: {} }'))]
    await gatewright(['plan', '--each', ...changed, '--out', tags])
    await gatewright(['apply', file('meanwhile.yaml', group('cli-pf-b', ', attrs: { attributes: { a: 2 } }'))])
    expect((await exited(1, gatewright(['apply', '--each', ...changed, '--plan-file', tags]))).output).toMatch(
      /^applied .*pf-a.yaml\n[\s\S]*refused .*pf-b\.yaml \(412\)/,
    )
  })

  test('GATEWRIGHT_OWNER and --owner are sent; a document keeps its own', async () => {
    const path = file('owned.json', await named('ldap', 'cli-owned'))
    const ownerOf = (slug: string) =>
      on.db.application.findUniqueOrThrow({ where: { slug } }).then(({ owner }) => owner)
    await gatewright(['apply', path], { GATEWRIGHT_OWNER: 'équipe a' })
    expect(await ownerOf('cli-owned')).toBe('équipe a')
    expect(await gatewright(['apply', path, '--owner', 'team-b'])).toMatchObject({ code: 1 })
    await gatewright(['apply', path, '--owner', 'team-b', '--allow-takeover'])
    expect(await ownerOf('cli-owned')).toBe('team-b')
    const own = file('own.yaml', `owner: team-c\n${group('cli-own')}`)
    expect(await gatewright(['apply', own], { GATEWRIGHT_OWNER: 'team-a' })).toMatchObject({ code: 0 })
  })
})

describe('plan and diff', () => {
  test('changes are a 2, and change nothing; none are a 0; what is refused is a 1', async () => {
    const path = file('planned.json', await named('oauth2', 'cli-planned'))
    const planned = await gatewright(['plan', path])
    expect(planned.output).toMatch(
      /^2 to add, 0 to change, 0 to delete\n\+ service_providers_oauth2\.oauth2provider "cli-planned"\n {2}\+ name: "cli-planned"\n/,
    )
    expect(planned.code).toBe(2)
    expect(await on.db.application.count({ where: { slug: 'cli-planned' } })).toBe(0)
    expect(await gatewright(['diff', path])).toMatchObject({ code: 2 })
    await gatewright(['apply', path])
    for (const command of ['plan', 'diff'])
      expect((await exited(0, gatewright([command, path]))).output).toMatch(
        /^0 to add, 0 to change, 0 to delete\n2 unchanged in 1 file\n$/,
      )
    const bad = file('refused.yaml', group('cli-refused', ', attrs: { parnt: 1 }'))
    expect(await gatewright(['diff', bad, path])).toMatchObject({ code: 1 })
  })

  test('diff names each field with its old and its new value, and of a secret only that it differs', async () => {
    const old = await named('oauth2', 'cli-diff', { app: { group: 'Old' } })
    await gatewright(['apply', file('diff.json', old)])
    const secret = 'another-secret-0123456789'
    const path = file(
      'diff.json',
      await named('oauth2', 'cli-diff', { app: { group: 'New' }, provider: { client_secret: secret } }),
    )
    const { code, output } = await gatewright(['diff', path])
    expect(code).toBe(2)
    expect(output).toContain('- group: "Old"\n')
    expect(output).toContain('+ group: "New"\n')
    expect(output).toContain('~ client_secret: changed\n')
    expect(output).not.toContain(secret)
  })

  test('diff and the summary name what differs in lists and objects', async () => {
    const summary = join(folder, 'items.md')
    const uri = (path: string) => ({ matching_mode: 'strict', url: `https://cli-items.example.com/${path}` })
    const of = async (uris: string[], floor: number) => {
      const provider = await named('oauth2', 'cli-items', { provider: { redirect_uris: uris.map(uri) } })
      const attributes = JSON.stringify({ name: 'x', floors: [{ id: floor }] })
      return [
        file('items.json', provider),
        file('items.yaml', group('cli-items', `, attrs: { attributes: ${attributes} }`)),
      ]
    }
    await gatewright(['apply', ...(await of(['a', 'b'], 1))])
    const { output } = await gatewright(['diff', ...(await of(['a', 'c'], 2)), '--summary', summary])
    for (const text of [output, readFileSync(summary, 'utf8')]) {
      expect(text.split('\n').flatMap((line) => /^ *([-+] \w+[:.].*)$/.exec(line)?.[1] ?? [])).toEqual([
        '- redirect_uris: {"matching_mode":"strict","url":"https://cli-items.example.com/b"}',
        '+ redirect_uris: {"matching_mode":"strict","url":"https://cli-items.example.com/c"}',
        '- attributes.floors.0.id: 1',
        '+ attributes.floors.0.id: 2',
      ])
    }
  })

  test('--json is one document, --summary is Markdown', async () => {
    const summary = join(folder, 'summary.md')
    const path = file('json.yaml', group('cli-json'))
    const { code, output } = await gatewright(['plan', path, '--json', '--summary', summary])
    expect(code).toBe(2)
    expect(JSON.parse(output)).toMatchObject({
      exit: 2,
      results: [{ file: path, outcome: 'changes', changes: [{ action: 'create', key: { name: 'cli-json' } }] }],
    })
    expect(readFileSync(summary, 'utf8')).toMatch(
      /^### gatewright plan: 1 to add, 0 to change, 0 to delete\n\n\| File \| Outcome \|\n/,
    )
  })
})

describe('a service that is away', () => {
  test('is waited for as long as --timeout says: 3, and nothing was sent', async () => {
    const path = file('away.yaml', group('cli-away'))
    const { code, output } = await gatewright(['apply', path, '--timeout', '1'], {
      GATEWRIGHT_URL: `http://127.0.0.1:${await freePort()}`,
    })
    expect(output).toMatch(
      /^unreachable +\S+away\.yaml\n.*does not answer \(ECONNREFUSED\)\.\n +Nothing was applied\.\n/m,
    )
    expect(code).toBe(3)
  })

  test.each([
    ['a lost connection', null],
    ['a 500', 500],
    ['a 502 of a proxy', 502],
  ])('an apply that ends in %s is unknown: 3', async (_, status) => {
    const server = createServer(({ socket }, answer) => {
      if (status === null) socket.destroy()
      else answer.writeHead(status).end('<html>')
    })
    atEnd(async () => void server.close())
    const port = await freePort()
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    const url = { GATEWRIGHT_URL: `http://127.0.0.1:${port}` }
    const path = file('unknown.yaml', group('cli-unknown'))
    const applied = await gatewright(['apply', path, '--timeout', '1'], url)
    expect(applied.output).toMatch(/^unknown +\S+unknown\.yaml\n/m)
    expect(applied.output).toContain('It may have been applied, or not.')
    expect(applied.code).toBe(3)
    expect(await gatewright(['plan', path, '--timeout', '1'], url)).toMatchObject({ code: 3 })
  })
})

test('what is missing is a 1: a command, files, a token, a permission', async () => {
  const path = file('usage.yaml', group('cli-usage'))
  const user = await on.make.user()
  for (const [args, env, output] of [
    [[], {}, /^gatewright COMMAND/],
    [['aply'], {}, /^There is no command "aply"\. Did you mean apply\?\n$/],
    [['shwo'], {}, /^There is no command "shwo"\. Did you mean show\?\n$/],
    [['everything'], {}, /^There is no command "everything"\.\n\ngatewright COMMAND/],
    [['plan', path, '--sumary', 'x'], {}, /^Unknown option '--sumary'\. Did you mean --summary\?\n$/],
    [['apply'], {}, /^Name files or folders/],
    [['apply', path, '--allow-everything'], {}, /^Unknown option '--allow-everything'/],
    [['apply', path, '--plan', 'x'.repeat(22)], {}, /^Unknown option '--plan'/],
    [['apply', path, '--if-match', 'x'], {}, /^Unknown option '--if-match'\.$/m],
    [['apply', path, '--owner', ''], {}, /^--owner: May not be empty\.\n$/],
    [['apply', path, '--owner', 'a,b'], {}, /^--owner: May have no comma/],
    [['runs', '--state', ''], {}, /^--state: May not be empty\.\n$/],
    [['token', 'create', 'x', '--stack='], {}, /^--stack: May not be empty\.\n$/],
    [['plan', path, '--summary', ''], {}, /^--summary: May not be empty\.\n$/],
    [['--verbose', 'runs'], {}, /^There is no command "--verbose": options stand behind the command\.\n$/],
    [['-v'], {}, /^There is no command "-v": options stand behind the command\.\n$/],
    [['apply', path, '--timeout', '0'], {}, /^--timeout takes/],
    [['apply', path], { GATEWRIGHT_TOKEN: '' }, /^No access token: set GATEWRIGHT_TOKEN/],
    [['apply', path], { GATEWRIGHT_URL: 'http://gatewright.example' }, /unencrypted: use https/],
    [['apply', path], { GATEWRIGHT_URL: 'nowhere' }, /GATEWRIGHT_URL is "nowhere"/],
    [
      ['apply', path],
      { GATEWRIGHT_URL: 'https://ada:hunter2@x.example' },
      /GATEWRIGHT_URL holds a user name or a password/,
    ],
    [['apply', 'https://ada:hunter2@x.example/a.yaml'], {}, /https:\/\/\*{8}@x\.example\/a\.yaml/],
    [['apply', path, '--files-from', 'https://ada:hunter2@x.example'], {}, /--files-from \S+ is no folder/],
    [
      ['apply', path],
      { GATEWRIGHT_TOKEN: user.token },
      /\(403\)\n +\S+usage\.yaml:4:5 You may not write group "cli-usage": the permission add_group, change_group or delete_group is missing\.\n/,
    ],
    [
      ['apply', path],
      { GATEWRIGHT_TOKEN: 'wrong' },
      /^refused .* \(401\)\n +Send a valid access token\. Refused: GATEWRIGHT_TOKEN\.\n$/,
    ],
    [
      ['runs'],
      { GATEWRIGHT_TOKEN: '', GATEWRIGHT_TOKEN_FILE: file('wrong-token', 'wrong') },
      /^Send a valid access token\. Refused: GATEWRIGHT_TOKEN_FILE\.\n$/,
    ],
    [
      ['runs'],
      { GATEWRIGHT_TOKEN: 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln' },
      /^Send a valid access token\. Refused: GATEWRIGHT_TOKEN\. It holds an identity token, which belongs in GATEWRIGHT_ID_TOKEN\.\n$/,
    ],
    [
      ['runs'],
      { GATEWRIGHT_TOKEN: 'Bearer x' },
      /GATEWRIGHT_TOKEN holds a character that no token has, such as a blank/,
    ],
    [['apply', join(folder, 'none.yaml')], {}, /Cannot be read \(ENOENT\)\./],
  ] as const) {
    const answer = await gatewright([...args], env)
    expect(answer.output).toMatch(output)
    expect(answer.code).toBe(1)
    expect(answer.output).not.toMatch(/^\s+at |hunter2/m)
  }
})

test('an apply whose summary cannot be written sends nothing', async () => {
  const args = [
    'apply',
    file('summary.yaml', group('cli-summary')),
    '--json',
    '--summary',
    join(folder, 'none', 'a.md'),
  ]
  await exited(1, gatewright(args), /^\S+a\.md cannot be written \(ENOENT\)\.\n$/)
  expect(await countOf('cli-summary')).toBe(0)
  await exited(
    1,
    gatewright([...args.slice(0, -1), folder]),
    /^\{\n[\s\S]*"outcome": "applied"[\s\S]*\} *\n\S+ cannot be written/,
  )
})

test('GATEWRIGHT_TOKEN_FILE names a file with the token', async () => {
  const token = file('token', `${adminToken}\n`)
  const env = { GATEWRIGHT_TOKEN: '', GATEWRIGHT_TOKEN_FILE: token }
  expect(await gatewright(['apply', file('by-file.yaml', group('cli-by-file'))], env)).toMatchObject({ code: 0 })
})
