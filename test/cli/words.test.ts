import { writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emptyResult } from '../../src/cli/deliver.ts'
import { inOptions } from '../../src/cli/options-for-headers.ts'
import { openOutput } from '../../src/cli/output.ts'
import { redacted } from '../../src/cli/send.ts'
import { uuid7 } from '../../src/ids.ts'
import { behindTls as serviceBehindTls } from '../support/behind-tls.ts'
import { adminToken, atEnd, exited, freshFolder, listening, named } from '../support/kit.ts'

/** What the program says where the service speaks of headers, or the system of codes. */

const folder = freshFolder()
const there = await listening({ GATEWRIGHT_TOKEN: adminToken })

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(async () => void server.close())
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function behindTls(name: string, notBefore?: Date): Promise<{ url: string; authority: string }> {
  const { port, authority } = await serviceBehindTls(there.address, name, notBefore)
  return { url: `https://localhost:${port}`, authority }
}

test('a refusal of another owner names the option', async () => {
  const path = join(folder, 'app.json')
  writeFileSync(path, JSON.stringify(await named('oauth2', 'words')))
  expect(await there.gatewright(['apply', path, '--owner', 'team-a'])).toMatchObject({ code: 0 })
  const { code, output } = await there.gatewright(['apply', path, '--owner', 'team-b'])
  expect(code).toBe(1)
  expect(output).toContain('. --allow-takeover takes it from that owner')
  expect(output).not.toContain('Gatewright-Allow')
  expect(await there.gatewright(['apply', path, '--owner', 'team-b', '--allow-takeover'])).toMatchObject({ code: 0 })
})

test.each([
  ['Gatewright-Allow: deletes=3 applies it all the same', '--allow-deletes 3 applies it all the same'],
  ['Apply it with Gatewright-Allow: grants, or with If-Match', 'Apply it with --allow-grants, or with --plan-file'],
  ['send one of them as Gatewright-Owner', 'send one of them as --owner'],
  ['group "If-Match \\" Gatewright-Owner" created', 'group "If-Match \\" Gatewright-Owner" created'],
])('%s', (sentence, words) => {
  expect(inOptions(sentence)).toBe(words)
})

test('an unknown authority is named with its remedy, which works', async () => {
  const { url, authority } = await behindTls('localhost')
  const { code, output } = await there.gatewright(['runs'], { GATEWRIGHT_URL: url })
  expect({ code, output }).toEqual({
    code: 3,
    output: expect.stringMatching(
      / its certificate is signed by an unknown authority: set NODE_EXTRA_CA_CERTS to a file /,
    ),
  })
  const trusting = { GATEWRIGHT_URL: url, NODE_EXTRA_CA_CERTS: authority }
  expect(await there.gatewright(['runs'], trusting)).toMatchObject({ code: 0 })
})

test('an expired certificate, and one of another host, are named', async () => {
  const old = await behindTls('localhost', new Date(Date.now() - 11 * 365 * 86_400_000))
  expect(await there.gatewright(['runs'], { GATEWRIGHT_URL: old.url, NODE_EXTRA_CA_CERTS: old.authority })).toEqual({
    code: 3,
    output: expect.stringContaining('(CERT_HAS_EXPIRED): its certificate has expired'),
  })
  const other = await behindTls('gatewright.test')
  const asOther = { GATEWRIGHT_URL: other.url, NODE_EXTRA_CA_CERTS: other.authority }
  await exited(3, there.gatewright(['runs'], asOther), 'its certificate is for another host: set GATEWRIGHT_URL')
})

test('https:// on a port of plain HTTP is named', async () => {
  const port = await portOf(createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')))
  expect(
    (await exited(3, there.gatewright(['runs'], { GATEWRIGHT_URL: `https://localhost:${port}` }))).output,
  ).toContain('it speaks no TLS on this port')
})

describe('a wrong path in GATEWRIGHT_URL', () => {
  const path = join(folder, 'group.yaml')
  writeFileSync(path, 'entries: [{ model: service_core.group, identifiers: { name: wrong-path } }]\n')

  test.each([
    ['runs', '/blueprints/runs/', ''],
    ['show x', '/core/applications/x/', ''],
    ['export', '/', ''],
    [`plan ${path}`, '/blueprints/', 'Nothing was applied.'],
    [`apply ${path}`, '/blueprints/', 'Nothing was applied.'],
    ['token create x', '/core/tokens/', 'Nothing was created.'],
  ])('%s names the address that answered, and what to set: 3', async (command, api, end) => {
    for (const base of ['/gatewright', '/api/v3']) {
      const args = [...command.split(' '), '--timeout', '20']
      const { output } = await exited(3, there.gatewright(args, { GATEWRIGHT_URL: `${there.address}${base}` }), end)
      expect(output).toContain(`${there.address}${base}/api/v3${api}`)
      expect(output).toContain(
        ' answered 404, and is no path of Gatewright: set GATEWRIGHT_URL to the address of the service, with its base path and without /api/v3.',
      )
    }
  })

  test('is named for the 404 of another program, too', async () => {
    const server = createHttpServer((_, answer) => answer.writeHead(404).end('<html>'))
    const GATEWRIGHT_URL = `http://127.0.0.1:${await portOf(server)}`
    await exited(3, there.gatewright(['runs'], { GATEWRIGHT_URL }), / answered 404, and is no path of Gatewright: set/)
  })

  test.each([
    ['show none', 'There is no such application.\n'],
    ['logs 00000000-0000-4000-8000-000000000000', 'There is no such run.\n'],
    ['show ..', 'Neither . nor .. is a name.\n'],
    ['token revoke .', 'Neither . nor .. is a name.\n'],
    ['stack show ..', 'Neither . nor .. is a name.\n'],
  ])('is not the reason where the path is right: %s', async (command, output) => {
    expect(await there.gatewright(command.split(' '))).toEqual({ code: 1, output })
  })
})

test.each(['validate', 'plan'])('%s --json has the place of each value that is missing', async (command) => {
  const path = join(folder, `missing-${command}.yaml`)
  writeFileSync(path, 'app: {name: !Env NO_NAME, slug: a}\nprovider: {client_secret: !Env NO_SECRET}\n')
  const { code, output } = await there.gatewright([command, path, '--json'])
  expect(code).toBe(1)
  const [{ details }] = JSON.parse(output).results
  expect(details).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ line: 1, column: 13, message: expect.stringContaining('NO_NAME') }),
      expect.objectContaining({ line: 2, column: 27, message: expect.stringContaining('NO_SECRET') }),
    ]),
  )
})

test('each error of --json names the option, and what objects hold stays as it is', () => {
  const fields = { message: { from: null, to: 'If-Match' } }
  const changes = [{ model: 'service_core.group', key: { name: 'a' }, action: 'create', fields }]
  const details = [{ code: 'invalid_value', message: 'Send it as Gatewright-Owner.', pointer: '' }] as const
  expect(
    redacted({ ...emptyResult, file: 'a.yaml', outcome: 'changes', details, changes }, openOutput()),
  ).toMatchObject({
    details: [{ message: 'Send it as --owner.' }],
    changes,
  })
})

test('the logs of a run name the option', async () => {
  const id = uuid7()
  const at = new Date()
  const logs = ['rolled back: prune would delete 1: group "a". Gatewright-Allow: deletes=1 applies it all the same']
  const run = { id, title: 'a', requestId: 'a', state: 'done', applied: false, reason: 'conflict', logs } as const
  await there.on.db.run.create({ data: { ...run, startedAt: at, finishedAt: at } })
  const { output } = await there.gatewright(['logs', id])
  expect(output).toContain('. --allow-deletes 1 applies it all the same')
})
