import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { adminToken, needs } from '../support/kit.ts'
import { expectDriven, openStand, pythonPackages, type Stand } from './stand.ts'

/** Clients by openapi-generator. Its program is Java's; the package index of Python has it. */

const generator = 'openapi-generator-cli==7.26.0'
const timeout = 420_000

let stand: Stand
let program: (name: string) => string

async function openGenerator(): Promise<void> {
  stand ??= await openStand()
  program ??= await pythonPackages(stand, [generator])
}

/** @param properties of the generator; @returns the output folder, which has the driver */
async function generate(language: string, properties: string, driver: string, into: string): Promise<string> {
  const { stdout, stderr } = await stand.run(program('openapi-generator-cli'), [
    ...['generate', '--generator-name', language, '--input-spec', 'schema.json', '--output', language],
    ...['--git-host', 'example.com', '--git-user-id', 'gatewright', '--git-repo-id', 'client'],
    ...['--additional-properties', properties],
  ])
  expect(`${stdout}${stderr}`.match(/^\[.*\] ERROR.*/gm)).toBeNull()
  const folder = join(stand.folder, language, into)
  mkdirSync(folder, { recursive: true })
  cpSync(fileURLToPath(new URL(`openapi-generator/${driver}`, import.meta.url)), join(folder, driver))
  return join(stand.folder, language)
}

describe.runIf(needs('python3', 'java'))('a Python client by openapi-generator', () => {
  beforeAll(openGenerator, timeout)

  test('compiles, and a minimal second PUT changes nothing', { timeout }, async () => {
    await generate('python', 'packageName=gatewright_client', 'drive.py', '.')
    await stand.run(program('pip'), ['install', '--quiet', '--disable-pip-version-check', './python'])
    await stand.run(program('python'), ['-m', 'compileall', '-q', 'gatewright_client'], 'python')
    const { stdout } = await stand.run(program('python'), ['drive.py', stand.url, adminToken, 'python'], 'python')
    await expectDriven(stdout, 'python', stand.db)
  })
})

describe.runIf(needs('python3', 'java', 'javac', 'mvn'))('a Java client by openapi-generator', () => {
  beforeAll(openGenerator, timeout)

  test('compiles, and a minimal second PUT changes nothing', { timeout }, async () => {
    const folder = await generate(
      'java',
      // A request as one object: it does not change with each new parameter.
      'library=native,useSingleRequestParameter=true',
      'Drive.java',
      'src/main/java',
    )
    const path = ['dependency:build-classpath', '-Dmdep.outputFile=classpath', '-Dmdep.includeScope=runtime']
    await stand.run('mvn', ['--batch-mode', '--quiet', 'compile', ...path], 'java')
    const classes = ['target/classes', readFileSync(join(folder, 'classpath'), 'utf8').trim()].join(delimiter)
    const { stdout } = await stand.run('java', ['-cp', classes, 'Drive', stand.url, adminToken, 'java'], 'java')
    await expectDriven(stdout, 'java', stand.db)
  })
})

describe.runIf(needs('python3', 'java', 'go'))('a Go client by openapi-generator', () => {
  beforeAll(openGenerator, timeout)

  test('compiles, and a minimal second PUT changes nothing', { timeout }, async () => {
    await generate('go', 'packageName=gatewright', 'drive.go', 'drive')
    await stand.run('go', ['build', '-o', 'driver', './drive'], 'go')
    const { stdout } = await stand.run('./driver', [stand.url, adminToken, 'go'], 'go')
    await expectDriven(stdout, 'go', stand.db)
  })
})

describe.runIf(needs('python3', 'java'))('a TypeScript client by openapi-generator', () => {
  beforeAll(openGenerator, timeout)

  test('compiles strictly, and a minimal second PUT changes nothing', { timeout }, async () => {
    const folder = await generate('typescript-fetch', 'importFileExtension=.ts', 'drive.ts', '..')
    renameSync(folder, join(stand.folder, 'client'))
    const modules = fileURLToPath(new URL('../../node_modules/', import.meta.url))
    writeFileSync(join(stand.folder, 'package.json'), JSON.stringify({ type: 'module' }))
    const compilerOptions = {
      ...{ target: 'esnext', module: 'nodenext', lib: ['esnext', 'dom'], strict: true },
      ...{
        types: ['node'],
        typeRoots: [join(modules, '@types')],
        rewriteRelativeImportExtensions: true,
        outDir: 'out',
      },
    }
    const include = ['drive.ts', 'client/**/*.ts']
    writeFileSync(join(stand.folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }))
    await stand.run(process.execPath, [join(modules, 'typescript/bin/tsc'), '-p', '.'])
    const { stdout } = await stand.run(process.execPath, ['out/drive.js', stand.url, adminToken, 'typescript'])
    await expectDriven(stdout, 'typescript', stand.db)
  })
})

/** Crates that the installed compiler takes; nothing for a debugger. */
const cargoConfig = `
[resolver]
incompatible-rust-versions = "fallback"
[profile.dev]
debug = false
`

describe.runIf(needs('python3', 'java', 'cargo'))('a Rust client by openapi-generator', () => {
  beforeAll(openGenerator, timeout)

  test('compiles, and a minimal second PUT changes nothing', { timeout }, async () => {
    const properties = {
      ...{ packageName: 'gatewright', library: 'reqwest-trait' },
      // An answer is an enum of its statuses. The stand has no TLS.
      ...{ supportMultipleResponses: true, reqwestDefaultFeatures: '' },
      ...{ useSingleRequestParameter: true, useBonBuilder: true },
    }
    const given = Object.entries(properties).map((each) => each.join('='))
    const folder = await generate('rust', given.join(','), 'drive.rs', 'examples')
    mkdirSync(join(folder, '.cargo'))
    writeFileSync(join(folder, '.cargo/config.toml'), cargoConfig)
    await stand.run('cargo', ['add', '--quiet', '--no-default-features', '--features', 'rt', 'tokio@1'], 'rust')
    await stand.run('cargo', ['build', '--quiet', '--features', 'bon', '--example', 'drive'], 'rust')
    const { stdout } = await stand.run('target/debug/examples/drive', [stand.url, adminToken, 'rust'], 'rust')
    await expectDriven(stdout, 'rust', stand.db)
  })
})
