import { z } from 'zod'
import { flag, readArguments, readCount, readTimeoutMs, text, texts } from '../arguments.ts'
import { isLost, openClient, readAnswer } from '../client.ts'
import { exitCodes, Unreachable, UsageError } from '../exit.ts'
import { openOutput, shown } from '../output.ts'

/** `gatewright token create`: creates an access token, whose key is shown once. */

export const usage = `gatewright token create IDENTIFIER [OPTIONS]

Creates an access token and prints its key on standard output, the only time that it is shown.

  --user USER          for another user, by username or key (default: yourself)
  --days N             until it expires (default 30, or less where the service allows less)
  --description TEXT   what it is for
  --owner LABEL        bound to this owner: it reads and changes only applications and providers of it; may be repeated
  --timeout SECONDS    how long the service may take for each of its two answers (default 60)
  --json               {"identifier", "expires", "key"} on standard output
`

const options = { user: text, days: text, description: text, owner: texts, timeout: text, json: flag } as const

const dayMs = 86_400_000
const created = z.object({ identifier: z.string(), expires: z.string().nullable() })
const viewed = z.object({ key: z.string() })

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const [verb, identifier, ...others] = positionals
  if (verb !== 'create' || identifier === undefined || others.length > 0)
    throw new UsageError('It takes: gatewright token create IDENTIFIER')
  const days = values.days === undefined ? null : readCount('--days', values.days, { initial: 30, max: 36_500 })
  const user = values.user === undefined ? null : readUser(values.user)
  const body = JSON.stringify({
    identifier,
    ...(user !== null && { user }),
    ...(days !== null && { expires: new Date(Date.now() + days * dayMs).toISOString() }),
    ...(values.owner !== undefined && { owners: values.owner }),
    ...(values.description !== undefined && { description: values.description }),
  })
  const withinMs = readTimeoutMs(values.timeout, 60)
  const output = openOutput(values)
  const client = await openClient(output, values)
  // Neither request can be repeated: a token is created once, and its key viewed once.
  const once = async <Schema extends z.ZodType>(method: 'GET' | 'POST', path: string, schema: Schema) => {
    const answer = await client.send(method, path, { withinMs, ...(method === 'POST' && { body }) })
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
function readUser(text: string): string | number {
  if (text === '') throw new UsageError('--user takes a username or a key.')
  return /^\d+$/.test(text) ? readCount('--user', text, { initial: 1, max: 999_999 }) : text
}
