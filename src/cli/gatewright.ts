import manifest from '../../package.json' with { type: 'json' }
import { withoutPasswords } from '../hidden.ts'
import { goOnWithoutReader } from '../without-reader.ts'
import { exitCodeHelp, exitCodes } from './exit.ts'
import { endOnSignals } from './interrupted.ts'

/** The program `gatewright`: its commands, and its end. `bin/gatewright.mjs` starts it. */

type Command = {
  /** The text of `--help`, without the exit codes. */
  readonly usage: string
  /** @returns the exit code */
  run(args: readonly string[]): Promise<number>
}

/** A command's file is loaded when it is called. */
const commands: Readonly<Record<string, { readonly summary: string; load(): Promise<Command> }>> = {
  validate: { summary: 'check files, without a service', load: () => import('./commands/validate.ts') },
  plan: { summary: 'report what apply would do', load: () => import('./commands/plan.ts') },
  apply: { summary: 'apply files, and wait for the outcome', load: () => import('./commands/apply.ts') },
  import: {
    summary: 'report what of a document of this API family applies',
    load: () => import('./commands/import.ts'),
  },
  export: { summary: 'print what is configured as a blueprint', load: () => import('./commands/export.ts') },
  rollback: { summary: 'go back to the run before', load: () => import('./commands/rollback.ts') },
  stack: { summary: 'show what repositories manage', load: () => import('./commands/stack.ts') },
  show: { summary: 'print an application, its provider, owner and last run', load: () => import('./commands/show.ts') },
  env: { summary: 'print what an application needs, as variables', load: () => import('./commands/env.ts') },
  runs: { summary: 'list runs, the newest first; cancel one that waits', load: () => import('./commands/runs.ts') },
  logs: { summary: 'print the logs of a run; -f waits for its end', load: () => import('./commands/logs.ts') },
  token: { summary: 'create, list and revoke access tokens', load: () => import('./commands/token.ts') },
}

/** Commands of the version before, with their words of now. They go with the next version. */
const former: Readonly<Record<string, readonly string[]>> = {
  cancel: ['runs', 'cancel'],
  diff: ['plan', '--full'],
  schema: ['validate', '--schema'],
}

/** `diff --all FILE` -> `plan --full --reset FILE`, `help diff` -> `plan --full --help` */
function inWordsOfNow(args: readonly string[]): readonly string[] {
  const [name = '', ...rest] = args
  if (name === 'help' && rest[0] !== undefined) return inWordsOfNow([rest[0], '--help'])
  if (!Object.hasOwn(former, name)) return args
  return [...(former[name] ?? []), ...rest.map((arg) => (name === 'diff' && arg === '--all' ? '--reset' : arg))]
}

const listed = () =>
  Object.entries(commands)
    .map(([name, { summary }]) => `  ${name.padEnd(12)} ${summary}\n`)
    .join('')

const environmentHelp = `--env NAME, or GATEWRIGHT_ENV, takes the URL and the context of an environment of gatewright.yaml.
--verbose says on standard error which token is used, and until when.
`

const usage = () => `gatewright COMMAND [OPTIONS]

${listed()}
gatewright help COMMAND describes a command, gatewright --version prints the version.
${environmentHelp}
Environment: GATEWRIGHT_URL (default http://127.0.0.1:9000), GATEWRIGHT_OWNER, GATEWRIGHT_REQUEST_ID, HTTPS_PROXY, NO_PROXY,
NODE_EXTRA_CA_CERTS, NO_COLOR.
The token is the first of: GATEWRIGHT_TOKEN(_FILE); GATEWRIGHT_ID_TOKEN(_FILE), which is exchanged; for a service on this
machine, what its first start wrote to DATA_DIR; the identity token of GitHub Actions (GATEWRIGHT_AUDIENCE), or of a pod.

${exitCodeHelp}`

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = inWordsOfNow(args)
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    process.stdout.write(usage())
    return name === undefined ? exitCodes.refused : exitCodes.done
  }
  if (name === 'version' || name === '--version') {
    process.stdout.write(`gatewright ${manifest.version}\n`)
    return exitCodes.done
  }
  const found = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (found === undefined) {
    // It is loaded for errors only.
    const { nearest } = await import('../messages.ts')
    const near = nearest(name.slice(0, 100), Object.keys(commands))
    const next = near === undefined ? `.\n\n${usage()}` : `. Did you mean ${near}?\n`
    const end = name.startsWith('-') ? ': options stand behind the command.\n' : next
    process.stderr.write(`There is no command ${JSON.stringify(name)}${end}`)
    return exitCodes.refused
  }
  const command = await found.load()
  const options = rest.slice(0, rest.includes('--') ? rest.indexOf('--') : undefined)
  if (options.includes('--help') || options.includes('-h')) {
    process.stdout.write(`${command.usage}\n${environmentHelp}\n${exitCodeHelp}`)
    return exitCodes.done
  }
  return command.run(rest)
}

/** Errors of the caller, by name: their classes stand in files that `--help` does not load. */
const callerErrors = ['UsageError', 'ConfigError', 'StartError']

endOnSignals()
goOnWithoutReader()
try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  const isExpected = callerErrors.includes(name) || name === 'Unreachable'
  process.stderr.write(`${withoutPasswords(isExpected ? message : (stack ?? message))}\n`)
  // An error of the program itself proves nothing about the request.
  process.exitCode = callerErrors.includes(name) ? exitCodes.refused : exitCodes.unknown
}
