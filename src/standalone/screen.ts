import { resolve } from 'node:path'
import type { Report } from '../start-error.ts'

const seconds = (sinceMs: number) => `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`

/** Says what begins, and then how long it took. */
export const report: Report = async (what, work) => {
  const begun = performance.now()
  process.stdout.write(`  ${what} ... `)
  try {
    const result = await work()
    process.stdout.write(`${seconds(begun)}\n`)
    return result
  } catch (error) {
    process.stdout.write('failed\n')
    throw error
  }
}

export type Ready = {
  readonly url: string
  readonly startedMs: number
  /** Where the data is. */
  readonly place: string
  /** What the queue runs on. */
  readonly queue: string
  /** A file with a token in it, or none. */
  readonly tokenFile: string | null
  /** Shown this once. */
  readonly firstToken: string | null
}

/** The one screen of a server that is ready. */
export function readyScreen({ url, startedMs, place, queue, tokenFile, firstToken }: Ready): string {
  const token =
    tokenFile === null ? (firstToken ?? 'the one that you chose (BOOTSTRAP_TOKEN), or any other of yours') : tokenFile
  const bearer = tokenFile === null ? (firstToken ?? '<token>') : `$(cat ${quoted(tokenFile)})`
  const example = resolve(import.meta.dirname, '../../examples/oauth2.json')
  return `
  Gatewright is ready (${seconds(startedMs)}).

  API        ${url}/api/v3/
  Docs       ${url}/docs/
  Dashboard  ${url}/admin/queues/
  Health     ${url}/-/health/ready/
  Database   ${place}
  Queue      on ${queue}
  Token      ${token}
${firstToken === null || tokenFile === null ? '' : `             ${firstToken}  (shown this once)\n`}
  A first application with its provider; paste this into another terminal:

  curl -X PUT ${url}/api/v3/core/transactional/applications/ \\
    -H "Authorization: Bearer ${bearer}" \\
    -H 'Content-Type: application/json' \\
    -d @${quoted(example)}

  Ctrl-C stops everything.

`
}

/** For a shell, also inside double quotes' `$( )`. */
const quoted = (path: string) => (/^[\w./:@+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`)
