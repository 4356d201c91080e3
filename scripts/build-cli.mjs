// Writes the package of the command line program to dist/cli, or to the folder that is named: a program without
// dependencies, for Node 18 and newer. `npm run pack:cli` makes its tarball.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { loadRegistry } from '../src/models/registry.ts'
import { fileSchema } from '../src/openapi/file-schema.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const target = resolve(process.argv[2] ?? join(root, 'dist', 'cli'))
const packages = join(root, 'node_modules')
const { version, description, license } = readJson(join(root, 'package.json'))
const oldestNode = '18.17'

/** What Node 18 lacks of the language's library. A name that is not in this list fails the test of the package there. */
const newerThanNode18 = [
  ...['array/from-async', 'array/to-reversed', 'array/to-sorted', 'array/to-spliced', 'array/with'],
  ...['iterator', 'map', 'object/group-by', 'promise/try', 'promise/with-resolvers', 'regexp/escape', 'set'],
  ...['string/is-well-formed', 'string/to-well-formed', 'url/can-parse', 'weak-map'],
]

/** What it lacks of Node's own modules. */
const shims = join(root, 'scripts', 'node18')
const shimmed = new Map(['crypto', 'zlib'].map((name) => [`node:${name}`, join(shims, `${name}.mjs`)]))

const start = '\0start'
const program = join(root, 'src', 'cli', 'gatewright.ts')
const kindsFile = join(root, 'src', 'models', 'kinds.ts')

/** @type {import('rolldown').Plugin} */
const ownModules = {
  name: 'own modules',
  resolveId: (id, importer) => (id === start ? id : importer?.startsWith(shims) ? null : (shimmed.get(id) ?? null)),
  load(id) {
    if (id === start)
      return [...newerThanNode18.map((name) => `core-js/actual/${name}`), program]
        .map((name) => `import ${JSON.stringify(name)}`)
        .join('\n')
    return id === kindsFile ? kindsList() : null
  },
}

/** Replaces src/models/kinds.ts, which reads a folder. */
function kindsList() {
  const files = readdirSync(join(root, 'src', 'models', 'providers')).filter((file) => file.endsWith('.ts'))
  const imports = files.sort().map((file, index) => `import kind${index} from './providers/${file}'`)
  return `${imports.join('\n')}\nexport const loadKinds = async () => [${files.map((_, index) => `kind${index}`)}]\n`
}

rmSync(target, { recursive: true, force: true })
mkdirSync(target, { recursive: true })
const bundle = await rolldown({
  input: { gatewright: start },
  platform: 'node',
  // Only the service makes certificates.
  external: ['@peculiar/x509', 'reflect-metadata'],
  transform: { target: `node${oldestNode}` },
  plugins: [ownModules],
})
const { output } = await bundle.write({
  dir: join(target, 'bin'),
  format: 'esm',
  banner: (chunk) => (chunk.isEntry ? '#!/usr/bin/env node' : ''),
  entryFileNames: '[name].mjs',
  chunkFileNames: '[name]-[hash].mjs',
  comments: { legal: true },
})
await bundle.close()

writeJson(join(target, 'package.json'), {
  name: 'gatewright-cli',
  version,
  description: `${description}: its command line program`,
  license,
  type: 'module',
  bin: { gatewright: 'bin/gatewright.mjs' },
  engines: { node: `>=${oldestNode}` },
  files: ['bin', 'schema.json', 'README.md', 'LICENSE', 'LICENSES-OF-OTHERS'],
})
writeJson(join(target, 'schema.json'), fileSchema(await loadRegistry()))
copyFileSync(join(root, 'LICENSE'), join(target, 'LICENSE'))
copyFileSync(join(root, 'docs', 'cli.md'), join(target, 'README.md'))
writeFileSync(join(target, 'LICENSES-OF-OTHERS'), licenses(output))

/** The packages whose code is part of the program, each with its license. */
function licenses(chunks) {
  const names = chunks
    .flatMap(({ moduleIds = [] }) => moduleIds)
    .filter((id) => id.startsWith(packages))
    .map((id) => id.slice(packages.length + 1).split(sep))
    .map(([first, second]) => (first.startsWith('@') ? `${first}/${second}` : first))
  return [...new Set(names)]
    .sort()
    .map((name) => {
      const folder = join(packages, name)
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
      if (file === undefined) throw new Error(`${name} has no file of its license.`)
      return `${name} ${readJson(join(folder, 'package.json')).version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
    })
    .join(`\n${'-'.repeat(80)}\n\n`)
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
}
