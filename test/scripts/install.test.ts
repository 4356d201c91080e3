import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { atEnd } from '../support/at-end.ts'
import { plainEnvironment } from '../support/environment.ts'
import { isAlive, until } from '../support/until.ts'
import { makeProject, type Project } from './project.ts'

/** `npm start` and `npm test` run the script first, in whatever state the folder is. npm and Prisma are stand-ins. */

type Start = { output: string; errors: string; code: number | null; ms: number }

function begin({ root, bin, place }: Project, env: Record<string, string> = {}) {
  const from = performance.now()
  const child = spawn(process.execPath, [place('scripts/install.mjs')], {
    cwd: root,
    env: { ...plainEnvironment(), PATH: bin, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const end: Start = { output: '', errors: '', code: null, ms: 0 }
  child.stdout.on('data', (chunk) => {
    end.output += chunk
  })
  child.stderr.on('data', (chunk) => {
    end.errors += chunk
  })
  const ended = new Promise<Start>((resolve) => {
    child.once('close', (code) => resolve({ ...end, code, ms: performance.now() - from }))
  })
  atEnd(() => {
    child.kill('SIGKILL')
  })
  return { child, ended, output: () => end.output }
}

const start = (project: Project, env?: Record<string, string>) => begin(project, env).ended

/** An installed folder: made by the script itself. */
async function installed(): Promise<Project> {
  const project = makeProject()
  expect(await start(project)).toMatchObject({ code: 0, errors: '' })
  rmSync(project.place('calls'))
  return project
}

const ci = 'npm ci --include=dev --include=optional --ignore-scripts'
const generate = 'prisma generate'

test('an empty folder gets its packages and then its database client, and says what takes the time', async () => {
  const project = makeProject()
  const { code, output, errors } = await start(project)
  expect([code, errors]).toEqual([0, ''])
  expect(output).toMatch(/Installing packages .*\d s/)
  expect(output).toMatch(/Generating the database client \.\.\. \d+\.\d s/)
  expect(project.calls()).toEqual([ci, 'npm rebuild node', generate])
  expect(existsSync(project.place('.install.lock'))).toBe(false)
})

test('without an optional package that has one, no install script runs', async () => {
  const project = makeProject()
  rmSync(project.place('kit/node'), { recursive: true })
  expect(await start(project)).toMatchObject({ code: 0, errors: '' })
  expect(project.calls()).toEqual([ci, generate])
})

test('the npm that started it is the one that it calls', async () => {
  const project = makeProject()
  writeFileSync(project.place('bin/npm'), '#!/bin/sh\nexit 1\n')
  expect(await start(project, { npm_execpath: project.place('npm.cjs') })).toMatchObject({ code: 0 })
  expect(project.calls()[0]).toBe(ci)
})

test('npm finds programs where they were found before, and not in the folder that is installed', async () => {
  const project = makeProject()
  writeFileSync(
    project.place('npm.cjs'),
    "require('node:fs').writeFileSync('calls', process.env.PATH); process.exit(1)",
  )
  await start(project)
  expect(project.calls()).toEqual([project.bin])
})

test('an installed folder is left alone, at once and without a word', async () => {
  const project = await installed()
  const { ms, ...rest } = await start(project)
  expect(rest).toEqual({ code: 0, output: '', errors: '' })
  expect(project.calls()).toEqual([])
  expect(ms).toBeLessThan(2_000)
})

const marker = 'node_modules/.package-lock.json'
/** As `npm prune --omit=dev` leaves it: what a package of the product may use optionally, such as Prisma, stays. */
const withoutDev = ({ rewrite }: Project) =>
  rewrite(marker, (packages) => Object.entries(packages).filter(([, { dev }]) => !dev))

test.each<[string, string[], (project: Project) => unknown, Record<string, string>?]>([
  ['an installation that was broken off', [ci], ({ place }) => rmSync(place(marker))],
  ["npm's list cut off in the middle", [ci], ({ place }) => writeFileSync(place(marker), '{"packages": {"node_mo')],
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
    'a package too few',
    [ci],
    ({ rewrite }) =>
      rewrite(marker, (packages) => Object.entries(packages).filter(([path]) => path !== 'node_modules/fastify')),
  ],
  [
    'no Prisma, although npm lists it, and no client',
    [ci, generate],
    ({ place }) => [
      rmSync(place('node_modules/prisma'), { recursive: true }),
      rmSync(place('src/db/generated/.schema')),
    ],
  ],
  ['no database client', [generate], ({ place }) => rmSync(place('src/db/generated/.schema'))],
  ['a client of another schema', [generate], ({ place }) => appendFileSync(place('prisma/schema.prisma'), '// more\n')],
  ['no packages for developers', [], withoutDev],
  [
    'no packages for developers, and a client of another schema',
    [ci, generate],
    (project) => [withoutDev(project), appendFileSync(project.place('prisma/schema.prisma'), '// more\n')],
  ],
  ['no packages for developers, before tests', [ci], withoutDev, { npm_lifecycle_event: 'pretest' }],
])('%s: what is missing is made good, once', async (_, missing, lose, env = {}) => {
  const project = await installed()
  lose(project)
  expect(await start(project, env)).toMatchObject({ code: 0, errors: '' })
  expect(project.calls().filter((call) => !call.startsWith('npm rebuild'))).toEqual(missing)
  rmSync(project.place('calls'), { force: true })
  expect(await start(project, env)).toMatchObject({ code: 0, output: '', errors: '' })
  expect(project.calls()).toEqual([])
})

test.each<[string, RegExp, (project: Project) => unknown]>([
  [
    'npm fails',
    /^\n`npm ci` failed \(exit code 1\):\nnpm error code ENOTFOUND\n$/,
    ({ place }) =>
      writeFileSync(
        place('npm.cjs'),
        "console.error('npm error code ENOTFOUND\\nnpm error A complete log of this run'); process.exit(1)",
      ),
  ],
  ['there is no npm', /^\nnpm is not in the PATH[^\n]*\n$/, ({ place }) => rmSync(place('bin/npm'))],
  [
    'Prisma fails',
    /^\n`prisma generate` failed \(exit code 3\):\nno such model\n$/,
    ({ place }) => writeFileSync(place('kit/prisma/program.cjs'), "console.error('no such model'); process.exit(3)"),
  ],
  [
    'package-lock.json is in conflict',
    /^\npackage-lock\.json is missing, or is not JSON[^\n]*\n$/,
    ({ place }) => writeFileSync(place('package-lock.json'), '<<<<<<< HEAD'),
  ],
  [
    'package-lock.json is not there',
    /^\npackage-lock\.json is missing, or is not JSON[^\n]*\n$/,
    ({ place }) => rmSync(place('package-lock.json')),
  ],
])('when %s, it says so in a sentence, ends with 1, and is no hindrance to the next start', async (_, says, spoil) => {
  const project = makeProject()
  spoil(project)
  const { code, errors } = await start(project)
  expect(errors).toMatch(says)
  expect(code).toBe(1)
  expect(existsSync(project.place('.install.lock'))).toBe(false)
  expect(existsSync(project.place('src/db/generated/.schema'))).toBe(false)
})

test('a start beside another that installs waits for it, and does nothing twice', async () => {
  const project = await installed()
  const stamp = readFileSync(project.place('src/db/generated/.schema'))
  rmSync(project.place('src/db/generated/.schema'))
  writeFileSync(project.place('.install.lock'), '1\n')
  const second = begin(project)
  await until(() => second.output().includes('Waiting for another start'), { what: 'the second start to wait' })
  writeFileSync(project.place('src/db/generated/.schema'), stamp)
  rmSync(project.place('.install.lock'))
  expect(await second.ended).toMatchObject({ code: 0, errors: '' })
  expect(project.calls()).toEqual([])
})

test('one that was killed while it installed is not waited for', async () => {
  const project = makeProject()
  writeFileSync(project.place('.install.lock'), '1\n')
  const longAgo = new Date(Date.now() - 60_000)
  utimesSync(project.place('.install.lock'), longAgo, longAgo)
  expect(await start(project)).toMatchObject({ code: 0, errors: '' })
  expect(project.calls()[0]).toBe(ci)
})

test('stopped in the middle, it takes npm with it and leaves no lock', async () => {
  const project = makeProject()
  writeFileSync(
    project.place('npm.cjs'),
    "require('node:fs').writeFileSync('calls', String(process.pid)); setTimeout(() => {}, 60_000)",
  )
  const first = begin(project)
  const npm = await until(() => Number(project.calls()[0]) || null, { what: 'npm to be started' })
  first.child.kill('SIGTERM')
  expect(await first.ended).toMatchObject({ code: 1 })
  expect(existsSync(project.place('.install.lock'))).toBe(false)
  await until(() => !isAlive(npm), { what: 'npm to end' })
})
