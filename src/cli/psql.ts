import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { parseArgs } from 'node:util'
import { environmentWith, readPlaceOfDatabase } from '../config.ts'
import { type Answer, runStatement } from '../db/statement.ts'
import { runningUrl } from '../standalone/embedded/running.ts'
import { reasonOf, runProgram, StartError } from '../start-error.ts'

/** `npm run psql`: the database of a running `npm start`, or of DATABASE_URL, in psql or for one statement. */

const usage = `npm run psql                     opens psql on the database
npm run psql -- "SELECT ..."     runs one statement and prints its rows; it needs no psql
npm run -s psql -- --url         prints the URL of the database, with its password

It is the database of DIRECT_DATABASE_URL or DATABASE_URL, else that of the npm start that runs on DATA_DIR. Transactions are read-only, as
changes by SQL have no audit rows. To write nevertheless:

  --write    transactions may write
`

const options = {
  help: { type: 'boolean', short: 'h' },
  url: { type: 'boolean' },
  write: { type: 'boolean' },
} as const

const limits = { rows: 1_000, characters: 200, statementMs: 60_000, connectMs: 10_000 }
const applicationName = 'gatewright-psql'

async function main(): Promise<void> {
  const { values, positionals } = readArguments()
  if (values.help === true) return void process.stdout.write(usage)
  const [statement, ...others] = positionals
  if (others.length > 0) throw new StartError(`Quote the statement, so that it is one argument:\n${usage}`)
  const { databaseUrl, directDatabaseUrl, dataDir } = readPlaceOfDatabase()
  const url = directDatabaseUrl ?? databaseUrl ?? runningUrl(dataDir)
  if (values.url === true) return void process.stdout.write(`${url}\n`)
  const place = placeOf(url, values.write === true)
  process.exitCode = statement === undefined ? await openPsql(place) : await printStatement(place, statement)
}

function readArguments() {
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch (error) {
    throw new StartError(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
  }
}

type Place = {
  readonly url: string
  /** The same without the password: every user of the machine can read the arguments of a process. */
  readonly publicUrl: string
  readonly password: string
  /** The command line of the session in PostgreSQL. */
  readonly options: string
  readonly mayWrite: boolean
}

/** Parameters that psql knows too; it refuses those of other clients, such as `schema` and `connection_limit`. */
const shared =
  /^(ssl(mode|rootcert|cert|key)|host|port|channel_binding|connect_timeout|gssencmode|target_session_attrs)$/

function placeOf(text: string, mayWrite: boolean): Place {
  const url = new URL(text)
  const sent = url.searchParams.get('options') ?? ''
  url.searchParams.delete('options')
  const publicUrl = new URL(url)
  publicUrl.password = ''
  for (const name of [...publicUrl.searchParams.keys()]) if (!shared.test(name)) publicUrl.searchParams.delete(name)
  return {
    url: url.href,
    publicUrl: publicUrl.href,
    password: decodeURIComponent(url.password),
    options: [sent, mayWrite ? '' : '-c default_transaction_read_only=on'].filter((each) => each !== '').join(' '),
    mayWrite,
  }
}

const missing = `psql is not installed. Its package is postgresql-client (Debian, Ubuntu, Alpine), postgresql (Fedora) or libpq
(Homebrew). Without it: npm run psql -- "SELECT ..." runs one statement.`

/** @returns the exit code of psql */
function openPsql({ publicUrl, password, options, mayWrite }: Place): Promise<number> {
  process.stderr.write(mayWrite ? 'Changes by SQL have no audit rows.\n' : 'Read-only: to write, add -- --write\n')
  const variables = {
    PGAPPNAME: applicationName,
    PGOPTIONS: options,
    ...(password !== '' && { PGPASSWORD: password }),
  }
  const psql = spawn('psql', [publicUrl], { stdio: 'inherit', env: environmentWith(variables) })
  // Ctrl-C cancels the statement in psql, and does not end it.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => psql.kill())
  return new Promise((resolve, reject) => {
    psql.once('close', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])))
    psql.once('error', (error) => {
      const why = reasonOf(error) === 'ENOENT' ? missing : `psql cannot be started (${reasonOf(error)}).`
      reject(new StartError(why, { cause: error }))
    })
  })
}

/** @returns the exit code */
async function printStatement({ url, options, mayWrite }: Place, text: string): Promise<number> {
  const config = {
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: limits.connectMs,
    statement_timeout: limits.statementMs,
    ...(options !== '' && { options }),
  }
  try {
    process.stdout.write(asText(await runStatement(config, text, limits.rows)))
    return 0
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const hint = !mayWrite && reasonOf(error) === '25006' ? ' To write, add --write.' : ''
    throw new StartError(`${error.message || reasonOf(error)}.${hint}`, { cause: error })
  }
}

function asText({ command, rowCount, columns, rows, found }: Answer): string {
  if (columns.length === 0) return `${command}${rowCount === null ? '' : ` ${rowCount}`}\n`
  const table = toTable(columns, rows)
  return `${table}(${found > limits.rows ? `the first ${limits.rows} of ` : ''}${found} ${found === 1 ? 'row' : 'rows'})\n`
}

function toTable(names: readonly string[], rows: Answer['rows']): string {
  const lines = [names, ...rows].map((line) => line.map(toCell))
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const write = (cells: string[]) => ` ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')}`.trimEnd()
  const [head = [], ...others] = lines
  const rule = widths.map((width) => '-'.repeat(width + 2)).join('+')
  return [write(head), rule, ...others.map(write), ''].join('\n')
}

/** A value may hold what a terminal would obey. */
function toCell(value: string | null): string {
  const safe = (value ?? '').replace(/[\p{Cc}\p{Cf}]/gu, (character) => {
    const written = JSON.stringify(character).slice(1, -1)
    return written === character ? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}` : written
  })
  return safe.length > limits.characters ? `${safe.slice(0, limits.characters)}...` : safe
}

await runProgram(main)
