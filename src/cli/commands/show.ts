import { flag, readArguments, text } from '../arguments.ts'
import { open } from '../client.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { shown } from '../output.ts'
import { readApplication } from '../outputs.ts'
import { readRuns, submitterOf, wordOf } from '../runs.ts'

export const usage = `gatewright show SLUG [OPTIONS]

Prints an application with its provider, its owner, the last run that changed it, and what it needs, without secrets:
gatewright env SLUG prints these, as long as they can be read.

  --timeout SECONDS    how long the service may be away (default 30)
  --json               one JSON document on standard output
`

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, { timeout: text, json: flag })
  const [slug, ...others] = positionals
  if (slug === undefined || others.length > 0) throw new UsageError('show takes the slug of one application.')
  const { client, output } = await open(values)
  const { application, provider, needed } = await readApplication(client, slug)
  const query = { object: `application:${application.slug}`, mode: 'apply', page_size: '1' }
  const [last] = await readRuns(client, query)
  const outputs = needed.map((each) => (each.secret ? { ...each, value: null } : each))
  output.json({ application, provider, last_run: last ?? null, outputs })
  const { name, launch_url: url, owner, created_by_name: maker } = application
  output.line(
    [output.paint('bold', shown(application.slug)), shown(JSON.stringify(name)), shown(url ?? '')].join('  ').trimEnd(),
  )
  const line = (what: string, text: string) => output.line(`  ${what.padEnd(10)} ${shown(text)}`)
  line('owner', `${owner ?? 'none'}${maker === null ? '' : ` (made by ${maker})`}`)
  line('provider', provider === null ? 'none' : `${provider.verbose_name} ${JSON.stringify(provider.name)}`)
  const at = last?.created_at.slice(0, 19)
  if (last !== undefined) line('last run', `${last.id}  ${at}  ${wordOf(last)}  ${last.title} (${submitterOf(last)})`)
  for (const { name: variable, value, why } of outputs)
    output.line(`  ${variable}  ${shown(value ?? `(secret: ${why})`)}`)
  return exitCodes.done
}
