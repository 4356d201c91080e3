import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freshFolder } from '../support/folder.ts'

/** A fresh checkout in a folder of its own, as far as the install script looks, and an npm that asks no registry. */
export type Project = {
  readonly root: string
  /** All that is on the PATH: npm. */
  readonly bin: string
  place(path: string): string
  /** What was called so far: `npm ci ...`, without the options that only keep npm quiet. */
  calls(): string[]
  /** Changes the list of packages in a lock file. */
  rewrite(path: string, change: (packages: Packages) => Iterable<[string, Package]>): void
}

type Package = { version: string; optional?: boolean; dev?: boolean }
type Packages = Record<string, Package>

const source = fileURLToPath(new URL('../../', import.meta.url))

/** Calls are noted in the folder that they were made in; `ci` puts the kit where packages belong. */
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
  const place = (path: string) => join(root, path)
  const write = (path: string, text: string) => {
    mkdirSync(dirname(place(path)), { recursive: true })
    writeFileSync(place(path), text)
  }
  const readLock = (path: string): { packages: Packages } => JSON.parse(readFileSync(place(path), 'utf8'))

  for (const path of ['package.json', 'package-lock.json', 'scripts', 'prisma/schema.prisma'])
    cpSync(join(source, path), place(path), { recursive: true })
  mkdirSync(place('src/db/generated'), { recursive: true })
  write('npm.cjs', npm)
  write('bin/npm', `#!/bin/sh\nexec '${process.execPath}' '${place('npm.cjs')}' "$@"\n`)
  chmodSync(place('bin/npm'), 0o755)

  // As npm leaves it on a platform for which there is no PostgreSQL.
  const { packages } = readLock('package-lock.json')
  const there = Object.entries(packages).filter(([path, { optional }]) => path !== '' && !optional)
  write('kit/.package-lock.json', JSON.stringify({ packages: Object.fromEntries(there) }))
  write('kit/prisma/package.json', JSON.stringify({ version: '1.0.0', bin: { prisma: 'program.cjs' } }))
  write('kit/prisma/program.cjs', prisma)
  write('kit/node/package.json', '{}')

  return {
    root,
    bin: place('bin'),
    place,
    calls: () => (existsSync(place('calls')) ? readFileSync(place('calls'), 'utf8').trimEnd().split('\n') : []),
    rewrite: (path, change) => {
      const changed = Object.fromEntries(change(readLock(path).packages))
      writeFileSync(place(path), JSON.stringify({ packages: changed }))
    },
  }
}
