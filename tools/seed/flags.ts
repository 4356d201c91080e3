import { parseArgs } from 'node:util'
import { unknownName } from '../../src/messages.ts'
import { StartError } from '../../src/start-error.ts'
import { chainLength, type Size } from './organisation.ts'

export const usage = `npm run seed -- [options]

Fills an installation with an organisation: users in groups, roles, tokens, authenticators, applications with
providers, consents. Existing rows stay. The same seed makes the same rows; another adds others.

  --users <n>         how many users (1000)
  --groups <n>        how many groups, at least 80 (one for every 50 users)
  --applications <n>  how many applications (one for every 500 users, at least 20)
  --seed <n>          which rows: names begin with it, s1- for seed 1 (1)
  --database <url>    where to, instead of DATABASE_URL or the npm start that runs on DATA_DIR
  --help              prints this

The installation must have been started once. Its SECRET_KEY is taken from the environment or DATA_DIR.
`

export type Flags = { readonly seed: number; readonly size: Size; readonly database: string | null }

const numbers = {
  users: { min: 10, max: 1_000_000 },
  // A chain and the groups that every organisation has.
  groups: { min: chainLength + 30, max: 50_000 },
  applications: { min: 1, max: 200_000 },
  seed: { min: 0, max: 2_147_483_647 },
} as const

/**
 * @returns null for `--help`
 * @throws {StartError} for the first error
 */
export function parseFlags(args: readonly string[]): Flags | null {
  const sent = readOptions(args)
  if (sent.has('help')) return null
  const number = (name: keyof typeof numbers, fallback: number): number => {
    const [text, { min, max }] = [sent.get(name), numbers[name]]
    if (text === undefined) return Math.min(Math.max(fallback, min), max)
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new StartError(`--${name} is ${JSON.stringify(text)}: it takes a whole number from ${min} to ${max}.`)
  }
  const users = number('users', 1_000)
  return {
    seed: number('seed', 1),
    size: {
      users,
      groups: number('groups', Math.round(users / 50)),
      applications: number('applications', Math.max(20, Math.round(users / 500))),
    },
    database: database(sent.get('database')),
  }
}

function database(text: string | undefined): string | null {
  if (text === undefined) return null
  if (URL.canParse(text) && /^postgres(ql)?:$/.test(new URL(text).protocol)) return text
  // The URL may hold a password: the message does not repeat it.
  throw new StartError('--database is not a URL that starts with postgresql:// or postgres://.')
}

const known = ['users', 'groups', 'applications', 'seed', 'database', 'help']

function readOptions(args: readonly string[]): Map<string, string> {
  const text = { type: 'string' } as const
  const options = { users: text, groups: text, applications: text, seed: text, database: text }
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    tokens: true,
    options: { ...options, help: { type: 'boolean', short: 'h' } },
  })
  const sent = new Map<string, string>()
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    if (token.kind === 'positional') throw new StartError(`${JSON.stringify(token.value)} is no option: see --help.`)
    const { name, rawName, value } = token
    if (!known.includes(name)) throw new StartError(`${rawName}: ${unknownName('option', name, known)} See --help.`)
    if (sent.has(name)) throw new StartError(`${rawName} stands twice: give it once.`)
    if (name !== 'help' && value === undefined) throw new StartError(`${rawName} needs a value: see --help.`)
    sent.set(name, value ?? '')
  }
  return sent
}
