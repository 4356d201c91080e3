import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { registryEnvironment } from './environment.ts'
import { freshFolder } from './folder.ts'

/** The command line program as npm installs it from its tarball. It needs the registry. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const execute = promisify(execFile)
const oldNodes = { 18: '18.20.8', 22: '22.23.3' } as const

/** Programs of Node by major version. The present one is the project's own. */
export type Nodes = Readonly<Record<string, string>>

const npm = (args: readonly string[], cwd: string) =>
  execute('npm', [...args, '--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts'], {
    cwd,
    env: registryEnvironment(),
  })

/** @returns its program @throws when the registry has none for this machine */
async function installNode(version: string): Promise<string> {
  const cwd = freshFolder()
  writeFileSync(join(cwd, 'package.json'), '{"private": true}')
  const name = `node-${process.platform}-${process.arch}`
  await npm(['install', `${name}@${version}`], cwd)
  return join(cwd, 'node_modules', name, 'bin', 'node')
}

export async function installNodes(): Promise<Nodes> {
  const nodes: Record<string, string> = { 26: process.execPath }
  for (const [major, version] of Object.entries(oldNodes)) nodes[major] = await installNode(version)
  return nodes
}

/** Builds and installs it in an empty folder. @returns its program */
export async function installCli(folder: string): Promise<string> {
  const built = join(freshFolder(), 'cli')
  await execute(process.execPath, ['scripts/build-cli.mjs', built], { cwd: root })
  const { stdout } = await npm(['pack', '--json', '--pack-destination', folder], built)
  const [{ filename }] = JSON.parse(stdout)
  writeFileSync(join(folder, 'package.json'), '{"private": true}')
  await npm(['install', join(folder, filename)], folder)
  return join(folder, 'node_modules', 'gatewright-cli', 'bin', 'gatewright.mjs')
}
