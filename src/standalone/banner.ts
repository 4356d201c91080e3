import { resolve } from 'node:path'
import { apiPrefix, applyPath, dashboardPath, docsPath, homePath, readyPath } from '../paths.ts'
import type { Report } from '../start-error.ts'

const secondsSince = (startMs: number) => `${((performance.now() - startMs) / 1000).toFixed(1)} s`

/** Prints a line for each step: its name at once, and then how long it took. */
export const report: Report = async (step, work) => {
  const startMs = performance.now()
  process.stdout.write(`  ${step} ... `)
  try {
    const result = await work()
    process.stdout.write(`${secondsSince(startMs)}\n`)
    return result
  } catch (error) {
    process.stdout.write('failed\n')
    throw error
  }
}

export type Ready = {
  readonly url: string
  readonly startMs: number
  readonly database: string
  readonly queue: string
  /** A file that holds a token; null: there is none. */
  readonly tokenFile: string | null
  /** Whether this start wrote that file. */
  readonly isFirst: boolean
  /** The reason why everything runs as root; null: it does not. */
  readonly whyRoot: string | null
}

export function banner({ url, startMs, database, queue, tokenFile, isFirst, whyRoot }: Ready): string {
  const token = tokenFile ?? 'the one that you chose (BOOTSTRAP_TOKEN), or any other of yours'
  const bearer = tokenFile === null ? '<token>' : `$(cat ${quoted(tokenFile)})`
  const example = resolve(import.meta.dirname, '../../examples/oauth2.json')
  return `
  Gatewright is ready (${secondsSince(startMs)}).

  Start      ${url}${homePath}
  API        ${url}${apiPrefix}/
  Docs       ${url}${docsPath}
  Dashboard  ${url}${dashboardPath}
  Health     ${url}${readyPath}
  Database   ${database}
  Queue      on ${queue}
  Token      ${token}${isFirst ? ' (made at this start; it is in the file only)' : ''}
${whyRoot === null ? '' : `  User       root, because ${whyRoot}\n`}
  A first application with its provider; paste this into another terminal:

  curl -i -X PUT ${url}${applyPath} \\
    -H "Authorization: Bearer ${bearer}" \\
    -H 'Content-Type: application/json' \\
    -d @${quoted(example)}

  Ctrl-C stops everything.

`
}

/** Quotes a path for a shell, also inside `$( )` in double quotes. */
const quoted = (path: string) => (/^[\w./:@+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`)
