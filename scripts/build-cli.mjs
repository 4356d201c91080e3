// Runs before `npm pack`: writes the command line program to dist/ as JavaScript. It takes the files that the program
// imports, strips their types, and writes the endings of their imports anew.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
const source = join(root, 'src')
const target = join(root, 'dist')
const providers = join(source, 'models', 'providers')

/** Of another file of the project. Types are gone when it is applied, and with them what only they import. */
const imports = /(\b(?:from|import)\s*\(?\s*')(\.[^']+)\.ts(')/g

// The registry finds the kinds of providers by their files.
const open = [
  join(source, 'cli', 'gatewright.ts'),
  ...readdirSync(providers)
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(providers, file)),
]
const done = new Set()

// It warns that stripping types is experimental.
process.removeAllListeners('warning')
process.on('warning', () => {})
rmSync(target, { recursive: true, force: true })
for (let file = open.pop(); file !== undefined; file = open.pop()) {
  if (done.has(file)) continue
  done.add(file)
  const code = stripTypeScriptTypes(readFileSync(file, 'utf8'))
  for (const [, , path] of code.matchAll(imports)) open.push(join(dirname(file), `${path}.ts`))
  const built = join(target, relative(source, file)).replace(/\.ts$/, '.js')
  mkdirSync(dirname(built), { recursive: true })
  writeFileSync(built, code.replace(imports, '$1$2.js$3'))
}
