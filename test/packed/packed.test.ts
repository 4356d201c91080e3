import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { plainEnvironment } from '../support/environment.ts'
import { freshFolder } from '../support/folder.ts'

/** The packed package, installed by npm in an empty folder, on the Node of the machine. It needs the registry. */

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Without the project's own Node and npm's settings of the calling script. */
const { PATH = '', ...others } = plainEnvironment()
const env = {
  ...others,
  PATH: PATH.split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(delimiter),
}

function program(command: string, args: string[], cwd: string) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env, encoding: 'utf8', timeout: 120_000 })
  if (error !== undefined) throw error
  return { status, stdout, stderr }
}

test('npx gatewright works from the tarball', { timeout: 300_000 }, () => {
  const folder = freshFolder()
  // npm writes dist/ into the folder that it packs.
  const copy = join(folder, 'copy')
  mkdirSync(copy)
  for (const name of ['bin', 'docs', 'package.json', 'scripts', 'src', 'README.md', 'LICENSE'])
    cpSync(join(root, name), join(copy, name), { recursive: true })
  expect(program(process.execPath, ['scripts/build-cli.mjs'], copy)).toEqual({ status: 0, stdout: '', stderr: '' })
  const packed = program('npm', ['pack', '--json', '--ignore-scripts'], copy)
  const [{ filename, files }] = JSON.parse(packed.stdout)
  const paths = files.map(({ path }: { path: string }) => path)
  expect(paths).toContain('dist/cli/commands/apply.js')
  expect(paths.filter((path: string) => path.endsWith('.ts') || /\.env|secret-key|\.data/.test(path))).toEqual([])

  const empty = join(folder, 'empty')
  mkdirSync(empty)
  writeFileSync(join(empty, 'package.json'), '{"private": true}')
  const install = ['install', '--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts', join(copy, filename)]
  expect(program('npm', install, empty)).toMatchObject({ status: 0 })
  rmSync(copy, { recursive: true })

  const help = program('npx', ['--no-install', 'gatewright', '--help'], empty)
  expect(help).toMatchObject({ status: 0, stdout: expect.stringMatching(/^gatewright COMMAND/) })
  const validated = program('npx', ['--no-install', 'gatewright', 'validate', join(root, 'examples')], empty)
  expect(validated).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\d+ valid$/m) })
  writeFileSync(join(empty, 'bad.yaml'), '{ app: {} }')
  expect(program('npx', ['--no-install', 'gatewright', 'validate', 'bad.yaml'], empty)).toMatchObject({ status: 1 })
})
