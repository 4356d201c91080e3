import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { findProgram, onCi } from './environment.ts'
import { startPostgres } from './postgres.ts'
import { startRedis } from './redis-server.ts'
import { fillInstalled, fillTemplate } from './template.ts'

/** Shared by the whole run; test files use it through `database.ts`, `redis.ts` and `needs.ts`. */
export type Servers = {
  /** The server's own database, from which others are made and dropped. */
  readonly postgresUrl: string
  /** The migrated database that each test file gets a copy of. */
  readonly template: string
  /** The same, bootstrapped. */
  readonly installed: string
  /** null: redis-server is not installed. */
  readonly redisUrl: string | null
  /** null: Chromium is not installed. */
  readonly chromium: string | null
  /** Chromium's engine without its windows, for half the CPU time; Chromium itself where Debian's package of it is missing. */
  readonly headlessShell: string | null
  /** null: curl is not installed. */
  readonly curl: string | null
  /** null: promtool, of the package prometheus, is not installed. */
  readonly promtool: string | null
  /** Removed at the end of the run. */
  readonly folder: string
  /** A file to which each skipped test file adds a line. */
  readonly skipped: string
}

declare module 'vitest' {
  export interface ProvidedContext {
    servers: Servers
    /** Which implementation of the engine's transactions the tests of the engine run on. */
    transactions: 'prisma' | 'pipelined'
    /** Random and concurrent calls play this many times the rounds that their test names, each a multiple of 4. */
    rounds: number
  }
}

const template = 'template_gatewright'
const installed = 'template_installed'

/** Starts one PostgreSQL and one Redis for the whole run, and stops them after it. */
export default async function startServers(project: TestProject): Promise<() => Promise<void>> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major < 22 || (major === 22 && minor < 18)) {
    throw new Error(`The tests run on the project's own Node, not on ${process.version}: use \`npm test\`.`)
  }
  const redisServer = findProgram('redis-server')
  const chromium = findProgram('chromium', 'chromium-browser', 'google-chrome')
  const curl = findProgram('curl')
  const promtool = findProgram('promtool')
  if (onCi && redisServer === null) throw new Error('redis-server is not installed, and CI skips nothing.')
  if (onCi && chromium === null) throw new Error('Chromium is not installed, and CI skips nothing.')
  if (onCi && curl === null) throw new Error('curl is not installed, and CI skips nothing.')
  if (onCi && promtool === null) throw new Error('promtool (prometheus) is not installed, and CI skips nothing.')

  const postgres = await startPostgres({ durable: false })
  const skipped = join(postgres.folder, 'skipped')
  writeFileSync(skipped, '')
  await fillTemplate(postgres, template)
  await fillInstalled(postgres, installed, template)
  const redis = redisServer === null ? null : await startRedis()
  const servers = {
    ...{ postgresUrl: postgres.url(), template, installed, redisUrl: redis?.url ?? null },
    ...{ chromium, headlessShell: findProgram('chromium-headless-shell') ?? chromium, curl, promtool },
    ...{ folder: postgres.folder, skipped },
  }
  project.provide('servers', servers satisfies Servers)

  return async () => {
    const lines = readFileSync(skipped, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
    await Promise.all([postgres.remove(), redis?.remove()])
    report(lines.map((line) => line.split('\t')))
  }
}

/** The last lines of the run list the skipped tests, so that the run does not look complete. */
function report(skips: string[][]): void {
  const programs = new Set(skips.map(([program = '']) => program))
  for (const program of programs) {
    const files = [...new Set(skips.filter(([needed]) => needed === program).map(([, file = '']) => file))].sort()
    process.stdout.write(`SKIPPED: ${program} is missing: ${files.length} files: ${files.join(', ')}\n`)
  }
}
