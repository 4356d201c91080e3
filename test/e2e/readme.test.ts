import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { answered, applied } from '../support/asker.ts'
import { adminToken, freshFolder, type Installation, installation, needs, rows, sql, until } from '../support/kit.ts'
import { blocksOf, shellIn } from '../support/shell.ts'

/** The commands of README, docs/api.md and docs/apply.md, as they stand there, in a shell. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const pageOf = (path: string) => readFileSync(join(root, path), 'utf8')
const readme = pageOf('README.md')
const pages = [readme, pageOf('docs/api.md'), pageOf('docs/apply.md')]

/** The one block of commands that has this text. */
function block(part: string): string {
  const found = pages.flatMap(blocksOf).filter(({ info, text }) => info === 'sh' && text.includes(part))
  const [only = '', ...others] = found.map(({ text }) => text)
  if (only === '' || others.length > 0)
    throw new Error(`The pages have ${others.length} other blocks with ${part}, or none`)
  return only
}

test('README has at most 150 lines', () => {
  expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(150)
})

describe.runIf(needs('curl'))('the commands of README, docs/api.md and docs/apply.md', () => {
  let service: Installation
  let origin: string
  let folder: string

  beforeAll(async () => {
    service = await installation({ applyWaitMs: 4_000 })
    origin = await service.app.listen({ host: '127.0.0.1', port: 0 })
    folder = freshFolder()
    mkdirSync(join(folder, '.data'))
    writeFileSync(join(folder, '.data', 'admin-token'), `${adminToken}\n`)
    symlinkSync(join(root, 'examples'), join(folder, 'examples'))
    // Where npx looks first, as in a checkout.
    mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true })
    symlinkSync(join(root, 'bin/gatewright.mjs'), join(folder, 'node_modules', '.bin', 'gatewright'))
  })

  const shell = (commands: string, env: Record<string, string> = {}) =>
    shellIn(folder)(commands.replaceAll('http://127.0.0.1:9000', origin), env)

  test('the first PUT shows its run', async () => {
    const { output } = await shell(block('curl -i -X PUT'))
    expect(output).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(output).toMatch(/\{"applied":true,"logs":\["provider oauth2 \\"grafana\\" created/)
    const [, path = ''] = /^content-location: (\S+)/m.exec(output) ?? []
    expect((await service.admin.get(path)).json).toMatchObject({ state: 'done', applied: true })
  })

  test('the one with two mistakes is answered as it says', async () => {
    const { output } = await shell(block('"nme": "Wiki"'))
    expect(readme).toContain(`\n${output}\n`)
  })

  test('a rotation generates a secret, which its run shows', async () => {
    const { output } = await shell(block('"overlap": "hours=24"'))
    expect(output).toMatch(/client_secret changed \(the one before is valid until/)
    const [, path = ''] = /^content-location: (\S+)/m.exec(output) ?? []
    const { generated } = (await service.admin.get(path)).json as { generated: unknown }
    expect(JSON.stringify(generated)).toMatch(/"client_secret":"\S{30,}"/)
  })

  test('the search finds a user of the example', async () => {
    const organisation = readFileSync(join(root, 'examples/organisation.yaml'))
    const headers = { 'content-type': 'application/yaml' }
    await applied(service.admin.put('/api/v3/blueprints/', organisation, { headers }))
    const page = pageOf('docs/api.md')
    expect(page.indexOf('npm run apply -- examples/organisation.yaml')).toBeGreaterThan(0)
    expect(page.indexOf('npm run apply -- examples/organisation.yaml')).toBeLessThan(page.indexOf('?search=amira'))
    const { output } = await shell(block('?search=amira'))
    expect(JSON.parse(output)).toMatchObject({ pagination: { count: 1 }, results: [{ username: 'amira.haddad' }] })
  })

  describe('a pipeline', () => {
    const functions = block('deploy() {').replace(/^deploy examples.*\n/m, '')
    let token = ''

    beforeAll(async () => {
      const { output, errors } = await shell(block('examples/deployer.yaml'))
      const [, key = ''] = /\{"key":"(gw_a_[^"]+)"\}$/.exec(output) ?? []
      expect(key, output + errors).not.toBe('')
      token = key
    })

    const deploy = (body: unknown, env: Record<string, string> = {}) => {
      writeFileSync(join(folder, 'body.json'), JSON.stringify(body))
      const settings = { GATEWRIGHT_URL: origin, GATEWRIGHT_TOKEN: token, ...env }
      return shell(`${functions}\ndeploy body.json`, settings)
    }

    const body = (slug: string) => ({
      app: { slug, name: slug },
      provider_model: 'service_providers_radius.radiusprovider',
      provider: {
        ...JSON.parse(readFileSync(join(root, 'examples/radius.json'), 'utf8')).provider,
        name: slug,
      },
    })

    test('has a token that applies and may not read users', async () => {
      const { code, output } = await deploy(body('first'), { CI_JOB_ID: 'https://ci.test/jobs/4711' })
      expect([code, output]).toEqual([0, expect.stringContaining('{"applied":true')])
      expect(output).toMatch(/^x-request-id: https:\/\/ci\.test\/jobs\/4711$/m)
      expect(await service.db.application.findUnique({ where: { slug: 'first' } })).toMatchObject({ owner: 'team-a' })
      const found = await service.admin.get('/api/v3/blueprints/runs/?request_id=https%3A%2F%2Fci.test%2Fjobs%2F4711')
      expect(found.json).toMatchObject({ results: [{ slug: 'first', submitter_name: 'pipeline' }] })
      expect((await service.as(token).get('/api/v3/core/users/')).status).toBe(403)
    })

    test('plans and applies with the program, and applies again', async () => {
      const settings = { GATEWRIGHT_URL: origin, GATEWRIGHT_TOKEN: token }
      const commands = block('npx gatewright apply')
      const first = await shell(commands, settings)
      expect([first.code, first.output]).toEqual([0, expect.stringMatching(/^2 to add.*^applied /ms)])
      const again = await shell(commands, settings)
      expect([again.code, again.output]).toEqual([0, expect.stringMatching(/^2 unchanged in 1 file.*^unchanged /ms)])
    })

    test('deploys an example after the first PUT, and gets a 403 for what the admin made', async () => {
      const settings = { GATEWRIGHT_URL: origin, GATEWRIGHT_TOKEN: token }
      expect(await shell(block('deploy() {'), settings)).toMatchObject({ code: 0, errors: '' })
      const grafana = await shell(`${functions}\ndeploy examples/oauth2.json`, settings)
      expect(grafana).toMatchObject({ code: 1, output: expect.stringContaining('HTTP/1.1 403') })
    })

    test('gets another token when the old one is deleted and both calls are repeated', async () => {
      await answered(204, service.admin.send({ method: 'DELETE', url: '/api/v3/core/tokens/pipeline/' }))
      const { output } = await shell(block('examples/deployer.yaml'))
      const [, key = ''] = /\{"key":"(gw_a_[^"]+)"\}$/.exec(output) ?? []
      expect([key === token, (await service.as(token).get('/api/v3/core/users/me/')).status]).toEqual([false, 401])
      token = key
      expect((await service.as(token).get('/api/v3/core/users/me/')).status).toBe(200)
    })

    test('gets a new id for one that is too long or strange', async () => {
      for (const id of ['x'.repeat(129), 'a b']) {
        const { output } = await deploy(body('first'), { CI_JOB_ID: id })
        expect(output).toMatch(/^x-request-id: [0-9a-f-]{36}$/m)
      }
    })

    test('fails when it is refused, by a 400, a 401 or a 403', async () => {
      expect(await deploy({ app: {} })).toMatchObject({ code: 1, output: expect.stringContaining('HTTP/1.1 400') })
      const stranger = await deploy(body('first'), { GATEWRIGHT_TOKEN: 'gw_a_wrong' })
      expect(stranger).toMatchObject({ code: 1, output: expect.stringContaining('HTTP/1.1 401') })
      await service.db.application.update({ where: { slug: 'first' }, data: { owner: 'team-b' } })
      expect(await deploy(body('first'))).toMatchObject({ code: 1, output: expect.stringContaining('HTTP/1.1 403') })
    })

    test('fails when a 200 says that it was not applied', async () => {
      const release = service.hold()
      const sending = deploy(body('lost'))
      await service.queued(1)
      const where = { name: 'Deploys for team-a' }
      const { permissions } = await service.db.role.findUniqueOrThrow({ where })
      await service.db.role.update({ where, data: { permissions: [] } })
      release()
      expect(await sending).toMatchObject({
        code: 1,
        output: expect.stringMatching(/HTTP\/1\.1 200.*"applied":false/s),
      })
      await service.db.role.update({ where, data: { permissions } })
    })

    test('waits for the outcome of a 202', async () => {
      const release = service.hold()
      const sending = deploy(body('slow'))
      await service.queued(1)
      await transaction(service.db, async (tx) => {
        await rows(tx, sql`SELECT id FROM runs WHERE slug = 'slow' FOR UPDATE`)
        release()
        await until('a 202', () => service.log.some((line) => line.includes('"status":202')))
      })
      expect(await sending).toMatchObject({ code: 0, output: expect.stringMatching(/"state":"done".*"applied":true/s) })
    })

    test('fails at once when the run of a 202 is gone', async () => {
      const release = service.hold()
      const sending = deploy(body('gone'))
      await service.queued(1)
      await transaction(service.db, async (tx) => {
        await rows(tx, sql`SELECT id FROM runs WHERE slug = 'gone' FOR UPDATE`)
        const before = service.log.length
        const is202 = (line: string) => line.includes('"status":202')
        await until('a 202', () => service.log.slice(before).some(is202))
        await tx.run.deleteMany({ where: { slug: 'gone' } })
      })
      release()
      expect(await sending).toMatchObject({ code: 1, output: expect.stringContaining('HTTP/1.1 404') })
    })

    test('reports an address that does not answer as not known', async () => {
      const { code, errors } = await deploy(body('away'), { GATEWRIGHT_URL: 'http://127.0.0.1:1' })
      expect([code, errors]).toEqual([2, expect.stringContaining('curl')])
    })
  })
})
