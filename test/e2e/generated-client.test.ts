import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { type Exit, freePort, freshFolder, run } from '../support/kit.ts'
import { type Document, describe as describeDocument, schemaPath } from '../support/openapi.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const execute = promisify(execFile)

const top = freshFolder()

type Service = { readonly url: string; readonly token: string; stop(): Promise<Exit> }

async function start(): Promise<Service> {
  const [dataDir, port] = [join(top, 'data'), await freePort()]
  const server = run('src/standalone/main.ts', { env: { DATA_DIR: dataDir, PORT: String(port), LOG_LEVEL: 'warn' } })
  await server.line(/Ctrl-C stops everything/)
  expect(server.output()).toContain(`http://127.0.0.1:${port}/docs/`)
  const token = readFileSync(join(dataDir, 'admin-token'), 'utf8').trim()
  return { url: `http://127.0.0.1:${port}`, token, stop: () => server.stop() }
}

/** Does what the author of a client does: from the document by a generator and a strict compiler to a program. */
async function compileClient(document: string): Promise<string> {
  const folder = join(top, 'client')
  mkdirSync(folder)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'schema.json'), document)
  cpSync(join(root, 'test/e2e/client/drive.ts'), join(folder, 'drive.ts'))
  const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'))
  const options = { ...compilerOptions, noEmit: false, outDir: 'out', rewriteRelativeImportExtensions: true }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: { ...options, noImplicitReturns: true },
      files: ['drive.ts', 'api.ts'],
    }),
  )
  await execute(process.execPath, [
    join(root, 'test/e2e/client/generate.ts'),
    join(folder, 'schema.json'),
    join(folder, 'api.ts'),
  ])
  await execute(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder]).catch(
    ({ stdout }: { stdout: string }) => {
      throw new Error(`The generated client does not compile:\n${stdout}`)
    },
  )
  return join(folder, 'out', 'drive.js')
}

test('a client that is generated from the document compiles strictly and drives every operation', async () => {
  const service = await start()
  try {
    await drive(service)
  } finally {
    await service.stop()
  }
}, 120_000)

async function drive({ url, token }: Service): Promise<void> {
  const document = await (await fetch(`${url}${schemaPath}`)).text()
  const { stdout } = await execute(process.execPath, [await compileClient(document), url, token])

  const asked: string[] = JSON.parse(stdout)
  const parsed: Document = JSON.parse(document)
  const operations = describeDocument(parsed).operations.map(({ method, path }) => `${method} ${path}`)
  // No run waits here that could be cancelled.
  const isAnswered = (each: string) => /20[014]$/.test(each) || /\/cancel\/ 409$/.test(each)
  const succeeded = asked.filter(isAnswered).map((each) => each.replace(/ \d+$/, ''))
  expect([...new Set(succeeded)].sort()).toEqual(operations.sort())
  expect(operations.length).toBeGreaterThanOrEqual(11)
}
