import { z } from 'zod'
import { overlap } from '../../models/overlap.ts'
import { loadRegistry } from '../../models/registry.ts'
import { flag, readArguments, readTimeoutMs, text } from '../arguments.ts'
import { type Client, openClient, read } from '../client.ts'
import { deliver } from '../deliver.ts'
import { UsageError } from '../exit.ts'
import { type LastDocument, lastDocument } from '../last-document.ts'
import { openOutput, shown } from '../output.ts'
import { codeOfResults, printResult } from '../report.ts'
import { headersOf } from '../send.ts'

/** `gatewright rotate`: a new client secret, generated here. */

export const usage = `gatewright rotate SLUG [OPTIONS]

Generates a new client secret, applies it to the provider of the application, and prints it on standard output, the only
time that it is shown. The old secret ends at once, unless an overlap is given. When the outcome is unknown, the secret is
printed too: it may be in force.

A file that has the secret as a plain value puts the old one back when it is applied again; one with
client_secret: {create: !Env NAME} leaves it as it is. It says so of the document that was applied last.

  --overlap TIME       for how long the old secret stays valid too, such as hours=24; at most days=90
  --owner LABEL        the owner under which you manage the application (default: GATEWRIGHT_OWNER)
  --allow-takeover     also of another owner; it belongs to your owner afterwards
  --timeout SECONDS    how long to wait for the outcome (default 120)
  --json               {"exit", "outcome", "logs", "errors", "run", "client_secret", "last_document"} on standard output; the
                       secret is null when it is certainly not in force
`

const options = { overlap: text, owner: text, 'allow-takeover': flag, timeout: text, json: flag } as const

const field = 'client_secret'
const application = z.object({
  provider_obj: z.object({ name: z.string(), meta_model_name: z.string(), verbose_name: z.string() }).nullable(),
})

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const [slug, ...others] = positionals
  if (slug === undefined || others.length > 0) throw new UsageError('rotate takes the slug of one application.')
  const timeoutMs = readTimeoutMs(values.timeout)
  const { overlap: time } = values
  const error = time === undefined ? undefined : overlap(time)
  if (error !== undefined) throw new UsageError(`--overlap: ${error}`)
  const client = await openClient()
  const provider = await providerOf(client, slug, timeoutMs)
  const secret = await newSecretOf(provider.meta_model_name, provider.verbose_name)
  const asked = { slug, model: provider.meta_model_name, provider: provider.name, field }
  const last = await lastDocument(client, asked, Math.min(timeoutMs, 10_000))
  const output = openOutput(new Set([secret]))
  const value = {
    app: { slug },
    provider_model: provider.meta_model_name,
    provider: { name: provider.name, [field]: time === undefined ? secret : { value: secret, overlap: time } },
  }
  const document = { file: slug, form: 'submission', value, body: JSON.stringify(value) } as const
  const delivered = await deliver(client, document, {
    mode: 'apply',
    headers: headersOf(values, values.owner ?? client.owner ?? undefined, null),
    waits: true,
    timeoutMs,
    onWait: output.waiting,
  })
  const exit = codeOfResults([{ ...delivered, file: slug }])
  const isInForce = ['applied', 'unknown'].includes(delivered.outcome)
  if (values.json === true) {
    const { outcome, logs, errors, run } = delivered
    const result = { exit, outcome, logs, errors, run, [field]: isInForce ? secret : null, last_document: last }
    output.json(JSON.stringify(result, null, 2))
    return exit
  }
  // Standard output has the secret alone, for a pipe into a secret store.
  printResult({ ...output, line: output.note }, { ...delivered, file: slug })
  if (isInForce) {
    process.stdout.write(`${secret}
`)
    const next = afterwards(last)
    if (next !== null) output.note(next)
  }
  return exit
}

const remedy = `Written as ${field}: {create: !Env NAME}, it is set for a new provider only, and stays as it is now.`

/** What the next apply of the files does to the new secret; null when it leaves it as it is. */
function afterwards(last: LastDocument | null): string | null {
  if (last === null)
    return `A file that has ${field} as a plain value puts that value back at its next apply, also one with !Env until its variable
holds the new secret. ${remedy}`
  const { run, title, at, sends } = last
  const file = `The file of run ${run} (${title}, ${at.slice(0, 19)})`
  switch (sends) {
    case 'value':
      return `${file} sends ${field} as a plain value: its next apply puts that value back,
also with !Env until its variable holds the new secret. ${remedy}`
    case 'generate':
      return `${file} sends ${field}: {generate: true}: its next apply makes another one.
${remedy}`
    case 'create':
    case 'nothing':
      return null
    default:
      return sends satisfies never
  }
}

/** @throws {UsageError} for an application without a provider */
async function providerOf(client: Client, slug: string, withinMs: number) {
  const path = `/core/applications/${encodeURIComponent(slug)}/`
  const { provider_obj: provider } = await read(client, path, application, { withinMs })
  if (provider === null) throw new UsageError(`The application ${shown(slug)} has no provider.`)
  return provider
}

/** @throws {UsageError} for a kind without a client secret */
async function newSecretOf(modelName: string, kind: string): Promise<string> {
  const registry = await loadRegistry()
  const secret = registry.byName(modelName)?.fields.get(field)?.generate?.()
  if (secret === undefined) throw new UsageError(`A provider of the kind ${shown(kind)} has no client secret.`)
  return secret
}
