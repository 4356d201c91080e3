import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startEmbedded } from '../../src/standalone/embedded.ts'
import { applyPath, freePort, freshFolder, named, type Running, run, tablesOf, until, within } from '../support/kit.ts'

/**
 * `npm run backup`, `npm run restore` and `npm run secrets -- forget` with `npm start`, as processes. The tests run in order on one
 * installation.
 */

const top = freshFolder()
const folder = (name: string) => join(top, name)
const [first, withKey, withoutKey] = [folder('first'), folder('with-key.gz'), folder('without-key.gz')]

const answer = z.looseObject({
  logs: z.array(z.string()).optional(),
  pagination: z.object({ count: z.int() }).optional(),
  results: z.array(z.looseObject({ slug: z.string() })).optional(),
})

type Service = {
  readonly process: Running
  /** @param tokenOf the installation whose first token is sent */
  ask(path: string, init?: RequestInit, tokenOf?: string): Promise<{ status: number; json: z.output<typeof answer> }>
}

/** @param tries a busy machine exceeds the product's limits on answers of the database at a start */
async function start(dataDir: string, env: Record<string, string> = {}, tries = 3): Promise<Service> {
  const port = await freePort()
  const process = run('src/standalone/main.ts', { env: { DATA_DIR: dataDir, PORT: String(port), ...env } })
  const [outcome] = await process.line(/Ctrl-C stops everything|The database is away/)
  if (outcome.startsWith('The database') && tries > 1) {
    await process.exited
    return start(dataDir, env, tries - 1)
  }
  expect(outcome).toContain('Ctrl-C')
  return {
    process,
    ask: async (path, init = {}, tokenOf = first) => {
      const authorization = `Bearer ${readFileSync(join(tokenOf, 'admin-token'), 'utf8').trim()}`
      const headers = { authorization, 'content-type': 'application/json' }
      // A busy machine does not answer within the product's second.
      return until(`an answer of ${path}`, async () => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers })
        const json: unknown = await response.json()
        return response.status !== 503 && { status: response.status, json: answer.parse(json) }
      })
    },
  }
}

async function command(
  file: string,
  dataDir: string,
  ...args: string[]
): Promise<{ code: number | null; output: string }> {
  const running = run(`src/cli/${file}.ts`, { env: { DATA_DIR: dataDir }, args })
  const { code } = await running.exited
  return { code, output: running.output() }
}

const put = async ({ ask }: Service, name: string, provider: Record<string, unknown> = {}) =>
  ask(applyPath, { method: 'PUT', body: JSON.stringify(await named('radius', name, { provider })) })

/** Reads the database of an installation that does not run. */
async function inside<Result>(dataDir: string, work: (url: string) => Promise<Result>): Promise<Result> {
  const server = await startEmbedded(dataDir, (_, step) => step())
  return work(server.url).finally(server.stop)
}

let applied = 0

test('a backup is made while the service applies, and of a service that is stopped', async () => {
  const service = await start(first)
  const sent: Promise<unknown>[] = []
  const backup = command('backup', first, withKey, '--with-key')
  let isOver = false
  void backup.then(() => {
    isOver = true
  })
  const client = async (name: string) => {
    for (let count = 0; !isOver; count += 1) {
      const { json } = await put(service, `${name}-${count}`)
      expect(json).toMatchObject({ applied: true })
      applied += 1
    }
  }
  for (const name of ['a', 'b', 'c']) sent.push(client(name))
  await Promise.all(sent)
  const { code, output } = await backup
  expect(code).toBe(0)
  expect(output).toMatch(
    /with-key\.gz has [\d,]+ rows of \d+ tables, in [\d,]+ bytes\.\n {2}The secret key is in it: who has the file/,
  )
  expect(applied).toBeGreaterThan(3)
  const restoring = await command('restore', first, withKey)
  expect([restoring.code, restoring.output]).toEqual([1, expect.stringContaining('Gatewright already runs')])
  expect(statSync(withKey).mode & 0o777).toBe(0o600)

  await service.process.stop()
  const later = await command('backup', first, withoutKey)
  expect(later.code).toBe(0)
  expect(later.output).toContain(`not in it: keep ${join(first, 'secret-key')}`)
  expect(readdirSync(top).sort()).toEqual(['first', 'with-key.gz', 'without-key.gz'])
}, 120_000)

test('what was written under load is one state, and works with its key', async () => {
  const dataDir = folder('second')
  const { code, output } = await command('restore', dataDir, withKey)
  expect([code, output]).toEqual([0, expect.stringContaining('The secret key was in the backup')])
  const key = join(dataDir, 'secret-key')
  expect(readFileSync(key)).toEqual(readFileSync(join(first, 'secret-key')))
  expect(statSync(key).mode & 0o777).toBe(0o600)
  const counts = await inside(dataDir, (url) =>
    within(url, async (client) => {
      const { rows } = await client.query(`SELECT (SELECT count(*)::integer FROM applications) AS applications,
        (SELECT count(*)::integer FROM providers) AS providers,
        (SELECT count(*)::integer FROM runs WHERE applied) AS applied,
        (SELECT count(*)::integer FROM audit_rows WHERE action = 'apply') AS audited`)
      return rows[0]
    }),
  )
  expect(Object.values(counts)).toEqual(Array(4).fill(counts.applied))

  const service = await start(dataDir)
  expect(await service.ask('/api/v3/core/users/me/')).toMatchObject({
    status: 200,
    json: { user: { is_superuser: true } },
  })
  const { json } = await service.ask('/api/v3/core/applications/?page_size=1')
  // Its secret is opened and compared.
  const sentAgain = await put(service, json.results?.[0]?.slug ?? '')
  expect(sentAgain.json.logs).toEqual([expect.stringContaining('unchanged'), expect.stringContaining('unchanged')])
  expect((await put(service, 'made-later')).json).toMatchObject({ applied: true })
  await service.process.stop()
}, 120_000)

describe('restored without its key', () => {
  const dataDir = folder('third')

  beforeAll(async () => {
    const { code, output } = await command('restore', dataDir, withoutKey)
    expect([code, output]).toEqual([0, expect.stringContaining(`put it into ${join(dataDir, 'secret-key')}`)])
  })

  test('every row is there', async () => {
    const [before, after] = [await inside(first, tablesOf), await inside(dataDir, tablesOf)]
    // The heartbeat of the service that was stopped.
    expect(after).toEqual({ ...before, queue_heartbeats: [], worker_formats: [], consumer_changes: [] })
    expect(after.applications).toHaveLength(applied)
  })

  test('the service does not start without the key, nor with another', async () => {
    for (const [env, why] of [
      [{}, /secret-key is missing/],
      [{ SECRET_KEY: 'another secret key for tests, 32 or more' }, /SECRET_KEY is not the key of this database/],
    ] as const) {
      const port = String(await freePort())
      const server = run('src/standalone/main.ts', { env: { DATA_DIR: dataDir, PORT: port, ...env } })
      expect(await server.exited).toEqual({ code: 1, signal: null })
      expect(server.output()).toMatch(why)
    }
  }, 60_000)

  test('a key that a running service knows is not lost', async () => {
    const SECRET_KEY = readFileSync(join(first, 'secret-key'), 'utf8').trim()
    const service = await start(dataDir, { SECRET_KEY })
    const { code, output } = await command('secrets', dataDir, 'forget', '--yes')
    expect(code).toBe(1)
    expect(output).toMatch(/^Gatewright runs \(process \d+ on .*\), and may know the key/)
    const [, environment = ''] = /(\/proc\/\d+\/environ)/.exec(output) ?? []
    if (existsSync('/proc/self/environ'))
      expect(readFileSync(environment, 'utf8')).toContain(`SECRET_KEY=${SECRET_KEY}\0`)
    await service.process.stop()
  }, 60_000)

  test('a lost key is forgotten, when that is confirmed: all but secrets stays', async () => {
    const before = await inside(dataDir, tablesOf)
    const asked = await command('secrets', dataDir, 'forget')
    expect(asked.code).toBe(1)
    expect(asked.output).toMatch(/radius "a-0": shared_secret\n[\s\S]*Nothing was changed\./)
    expect(asked.output).toContain(`Providers that lose secrets: ${applied}.`)
    expect(await inside(dataDir, tablesOf)).toEqual(before)
    expect(existsSync(join(dataDir, 'secret-key'))).toBe(false)

    const done = await command('secrets', dataDir, 'forget', '--yes')
    expect([done.code, done.output]).toEqual([0, expect.stringMatching(/of an administrator is in \S+admin-token\./)])
    const again = await command('secrets', dataDir, 'forget', '--yes')
    expect([again.code, again.output]).toEqual([1, 'Nothing is lost: the key that is set opens everything.\n'])

    const service = await start(dataDir)
    // The token that was made now, and the first one: tokens need no key.
    for (const tokenOf of [dataDir, first])
      expect(await service.ask('/api/v3/core/users/me/', {}, tokenOf)).toMatchObject({
        status: 200,
        json: { user: { is_superuser: true } },
      })
    const { json } = await service.ask('/api/v3/core/applications/?page_size=2')
    expect(json.pagination?.count).toBe(applied)
    const withoutSecret = await put(service, json.results?.[1]?.slug ?? '', { shared_secret: undefined })
    expect(withoutSecret.json.logs).toContainEqual(
      expect.stringContaining('shared_secret changed (generated: it was lost)'),
    )
    const sentAgain = await put(service, json.results?.[0]?.slug ?? '')
    expect(sentAgain.json).toMatchObject({
      applied: true,
      logs: [expect.stringContaining('shared_secret changed'), expect.stringContaining('unchanged')],
    })
    const running = await command('secrets', dataDir, 'forget')
    expect(running.output).toBe('Nothing is lost: the key that is set opens everything.\n')
    await service.process.stop()
  }, 120_000)
})

describe('refuses', () => {
  const refusal = async (file: string, dataDir: string, ...args: string[]) => {
    const { code, output } = await command(file, dataDir, ...args)
    expect(code).toBe(1)
    return output
  }

  test('a file that is there, and a folder that is not', async () => {
    expect(await refusal('backup', first, withKey)).toBe(`${withKey} exists: choose another name.\n`)
    const part = `${folder('part.gz')}.part`
    writeFileSync(part, 'of another backup')
    expect(await refusal('backup', first, folder('part.gz'))).toContain(
      `${part} cannot be made (a backup writes it now`,
    )
    expect(readFileSync(part, 'utf8')).toBe('of another backup')
    expect(await refusal('backup', first, join(top, 'nowhere', 'x.gz'))).toContain('cannot be made (ENOENT)')
    expect(await refusal('backup', folder('nothing'), folder('x.gz'))).toContain(
      `There is no database in DATA_DIR ${folder('nothing')}`,
    )
    expect(await refusal('backup', first)).toMatch(/^It takes one file/)
    expect(existsSync(`${folder('x.gz')}.part`)).toBe(false)
  })

  test('an installation that has data', async () => {
    expect(await refusal('restore', first, withKey)).toContain(`${join(first, 'postgres')} is there already`)
  })

  test('another key than that of the installation', async () => {
    const dataDir = folder('other-key')
    mkdirSync(dataDir)
    writeFileSync(join(dataDir, 'secret-key'), 'another secret key for tests, 32 or more')
    expect(await refusal('restore', dataDir, withKey)).toContain('The backup has another secret key')
  })

  test('a damaged file, of which nothing is left', async () => {
    const damaged = folder('damaged.gz')
    writeFileSync(damaged, readFileSync(withKey).subarray(0, -100))
    const dataDir = folder('fourth')
    expect(await refusal('restore', dataDir, damaged)).toContain(`${damaged} is damaged, or is no backup`)
    expect(readdirSync(dataDir).filter((name) => !name.startsWith('start.'))).toEqual([])
  }, 60_000)
})

test.each(['SIGKILL', 'SIGTERM'] as const)(
  'a restore that gets %s leaves no database, and the next one succeeds',
  async (signal) => {
    const dataDir = folder(signal)
    const restoring = run('src/cli/restore.ts', { env: { DATA_DIR: dataDir }, args: [withKey] })
    await restoring.line(/Making the tables/)
    restoring.signal(signal)
    await restoring.exited
    expect(existsSync(join(dataDir, 'postgres'))).toBe(false)
    expect(existsSync(join(dataDir, 'secret-key'))).toBe(false)
    expect(existsSync(join(dataDir, 'restore.unfinished'))).toBe(signal === 'SIGKILL')
    expect(await command('restore', dataDir, withKey)).toMatchObject({ code: 0 })
    expect(existsSync(join(dataDir, 'restore.unfinished'))).toBe(false)
  },
  120_000,
)
