import { z } from 'zod'
import { flag, readArguments, readCount, text, texts } from '../arguments.ts'
import { isLost } from '../ask.ts'
import { open, read, readAnswer, sendUntilAnswered } from '../client.ts'
import { exitCodes, Unreachable, UsageError } from '../exit.ts'
import { oneLine, shown } from '../output.ts'
import { readAll } from '../read-all.ts'

export const usage = `gatewright token create IDENTIFIER [OPTIONS]
gatewright token list
gatewright token revoke IDENTIFIER
gatewright token check

create creates an access token and prints its key on standard output, the only time that it is shown. list lists those that
you may see, the first to expire first. revoke deletes one: its key authenticates no more.
check prints where the token that is used comes from, its user, end and bonds, and the rule that an identity token matched.

  --user USER          for another user, by username or key (default: yourself)
  --days N             until it expires (default 30, or less where the service allows less)
  --message TEXT       what it is for
  --stack NAME         bound to this stack: it writes by its documents only; may be repeated
  --owner LABEL        bound to this owner: it reads and changes only applications and providers of it; may be repeated
  --timeout SECONDS    how long the service may take for each of its answers (default 60)
  --json               {"identifier", "expires", "key"} on standard output
`

const options = {
  user: text,
  days: text,
  message: text,
  owner: texts,
  stack: texts,
  timeout: text,
  json: flag,
} as const

const dayMs = 86_400_000
const created = z.object({ identifier: z.string(), expires: z.string().nullable() })
const viewed = z.object({ key: z.string() })

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const [verb, identifier, ...others] = positionals
  if (verb === 'list' && identifier === undefined) return list(await open(values, 60))
  if (verb === 'check' && identifier === undefined) return check(await open(values, 60))
  if (identifier === undefined || others.length > 0 || (verb !== 'create' && verb !== 'revoke'))
    throw new UsageError('It takes: gatewright token create IDENTIFIER, list, revoke IDENTIFIER, or check')
  if (verb === 'revoke') return revoke(identifier, await open(values, 60))
  const days = values.days === undefined ? null : readCount('--days', values.days, 36_500)
  const body = JSON.stringify({
    identifier,
    user: values.user === undefined ? undefined : readUser(values.user),
    expires: days === null ? undefined : new Date(Date.now() + days * dayMs).toISOString(),
    owners: values.owner,
    stacks: values.stack,
    description: values.message,
  })
  const { client, output } = await open(values, 60)
  // Neither request can be repeated: a token is created once, and its key viewed once.
  const once = async <Schema extends z.ZodType>(method: 'GET' | 'POST', path: string, schema: Schema) => {
    const answer = await client.send(method, path, { withinMs: client.timeoutMs, ...(method === 'POST' && { body }) })
    if (!isLost(answer)) return readAnswer(client, answer, schema)
    const what =
      method === 'POST' && !answer.isSent
        ? 'Nothing was created.'
        : `The token ${identifier} may have been created, and its key cannot be shown: delete it, and create another.`
    throw new Unreachable(`${answer.message}. ${what}`)
  }
  const token = await once('POST', '/core/tokens/', created)
  const { key } = await once('GET', `/core/tokens/${encodeURIComponent(token.identifier)}/view_key/`, viewed)
  output.json({ ...token, key }, 0)
  output.line(shown(key))
  if (values.json !== true)
    output.note(`${token.identifier} expires ${token.expires ?? 'never'}. The key is not shown again.`)
  return exitCodes.done
}

/** The user of a token. A text of digits is a key, like in every reference of the API. @throws {UsageError} */
const readUser = (text: string): string | number => (/^\d+$/.test(text) ? readCount('--user', text, 999_999) : text)

type Asking = Awaited<ReturnType<typeof open>>

const bonds = z.object({ owners: z.array(z.string()), stacks: z.array(z.string()) })

/** `owner team-a, stack shop` */
const bondsOf = ({ owners, stacks }: z.output<typeof bonds>) =>
  [...owners.map((each) => `owner ${each}`), ...stacks.map((each) => `stack ${each}`)].join(', ')

const listed = z.looseObject({
  identifier: z.string(),
  intent: z.string(),
  expires: z.string().nullable(),
  description: z.string(),
  user_obj: z.looseObject({ username: z.string() }),
  bound_to: bonds.default({ owners: [], stacks: [] }),
})

async function list({ client, output }: Asking): Promise<number> {
  const found = await readAll(client, '/core/tokens/', listed, 'expires')
  output.json(found)
  for (const { identifier, intent, expires, description, user_obj: user, bound_to: bound } of found) {
    const end = `expires ${expires?.slice(0, 10) ?? 'never'}`
    const bonded = bondsOf(bound) !== '' && `bound to ${bondsOf(bound)}`
    output.line(shown([identifier, intent, user.username, end, bonded, description].filter(Boolean).join('  ')))
  }
  return exitCodes.done
}

const claims = ['issuer', 'rule', 'subject', 'repository', 'ref', 'commit', 'job', 'job_url', 'actor']
const scalar = z.string().nullable()
const present = z.object({
  ...{ identifier: scalar, user: scalar, expires: scalar, bound_to: bonds },
  pipeline: z.record(z.string(), scalar).nullable(),
})

async function check({ client, output }: Asking): Promise<number> {
  const found = { from: client.tokenFrom, ...(await read(client, '/auth/token/', present)) }
  output.json(found)
  const { pipeline, bound_to: bound, ...own } = found
  const lines = { ...own, expires: own.expires ?? 'never', bound_to: bondsOf(bound) }
  for (const [name, value] of [...Object.entries(lines), ...claims.map((each) => [each, pipeline?.[each]] as const)])
    if (value) output.line(`${name.replace('_', ' ').padEnd(11)} ${oneLine(value)}`)
  return exitCodes.done
}

async function revoke(identifier: string, { client, output }: Asking): Promise<number> {
  const path = `/core/tokens/${encodeURIComponent(identifier)}/`
  readAnswer(client, await sendUntilAnswered(client, 'DELETE', path), z.null())
  output.json({ identifier, revoked: true }, 0)
  output.line(`${shown(identifier)} is revoked.`)
  return exitCodes.done
}
