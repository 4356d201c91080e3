import { randomUUID } from 'node:crypto'
import { readArguments, text } from '../arguments.ts'
import { open } from '../client.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { type Needed, readApplication } from '../outputs.ts'

export const usage = `gatewright env SLUG [OPTIONS]

Prints what the application needs of its provider: the issuer of the server that signs its users in, ids, addresses, keys
of key pairs, and secrets: those that the caller may read, else those that the service generated, as long as the run that
generated them shows them. Standard error says until when, and which cannot be read.

  --format FORMAT      dotenv (default), json, github (for >> "$GITHUB_ENV", with masks on standard error), or k8s-secret
  --timeout SECONDS    how long the service may be away (default 30)
`

type Value = Needed & { readonly value: string }

/** In single quotes, or where it holds one in double quotes: a shell reads both as dotenv does. */
const quoted = (value: string): string =>
  value.includes("'") ? `"${value.replace(/[\\"$`]/g, '\\$&')}"` : `'${value}'`

/** The data of a workflow command is one line. */
const inCommand = (line: string): string => line.replaceAll('%', '%25').replaceAll('\r', '%0D')

const formats: Readonly<Record<string, (values: readonly Value[], slug: string) => string>> = {
  dotenv: (values) => values.map(({ name, value }) => `${name}=${quoted(value)}\n`).join(''),
  json: (values) => `${JSON.stringify(Object.fromEntries(values.map(({ name, value }) => [name, value])), null, 2)}\n`,
  github(values) {
    const end = `end_${randomUUID()}`
    return values.map(({ name, value }) => `${name}<<${end}\n${value}\n${end}\n`).join('')
  },
  'k8s-secret'(values, slug) {
    const name = (slug.toLowerCase().match(/[a-z\d]+/g) ?? []).join('-').slice(0, 253)
    // A text of JSON is one of YAML, too, which no reader takes for a number or a boolean.
    const lines = values.map((each) => `  ${each.name}: ${JSON.stringify(each.value)}\n`)
    return `apiVersion: v1\nkind: Secret\nmetadata:\n  name: ${JSON.stringify(name)}\ntype: Opaque\nstringData:\n${lines.join('')}`
  },
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, { format: text, timeout: text })
  const [slug, ...others] = positionals
  if (slug === undefined || others.length > 0) throw new UsageError('env takes the slug of one application.')
  const { format = 'dotenv' } = values
  const print = Object.hasOwn(formats, format) ? formats[format] : undefined
  if (print === undefined) throw new UsageError(`--format takes ${Object.keys(formats).join(', ')}.`)
  const { client, output } = await open(values)
  const { provider, needed } = await readApplication(client, slug, true)
  if (provider === null) throw new UsageError(`Application ${JSON.stringify(slug)} has no provider.`)
  const known = needed.filter((each): each is Value => each.value !== null)
  if (format === 'github')
    for (const line of known.filter(({ secret }) => secret).flatMap(({ value }) => value.split('\n')))
      if (line !== '') process.stderr.write(`::add-mask::${inCommand(line)}\n`)
  process.stdout.write(print(known, slug))
  for (const { name, readable, why } of needed)
    if (why !== null) output.note(`${name}${readable ? '' : ' cannot be read'}: ${why}.`)
  return exitCodes.done
}
