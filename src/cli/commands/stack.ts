import { z } from 'zod'
import { flag, readArguments, text } from '../arguments.ts'
import { type Client, open, read, readAnswer, sendUntilAnswered } from '../client.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { shown } from '../output.ts'
import { findProject } from '../project.ts'
import { readAll } from '../read-all.ts'
import { job, placeOf } from '../runs.ts'

export const usage = `gatewright stack [list | show [NAME] | forget MODEL NAME] [OPTIONS]

list shows the stacks. show has the last two runs of one, its objects, and what is left over, by default of the one in
gatewright.yaml.
forget lets an object stay without its stack, such as: gatewright stack forget group engineering

  --stack NAME         for forget: the stack (default: that of gatewright.yaml)
  --timeout SECONDS    how long the service may be away (default 30)
  --json               one JSON document on standard output
`

const options = { stack: text, timeout: text, json: flag } as const

const summary = z.looseObject({
  name: z.string(),
  size: z.int(),
  left_over: z.int(),
  owners: z.array(z.string()),
  run: z.string().nullable(),
  run_before: z.string().nullable(),
  pipeline: job,
})
const member = z.looseObject({
  model: z.string(),
  name: z.string(),
  owner: z.string().nullable(),
  left_at: z.string().nullable(),
})
const detail = summary.extend({ members: z.array(member) })

/** The stack that the caller names, or gatewright.yaml. */
export const knownStack = async (sent: string | undefined): Promise<string | undefined> =>
  sent ?? (await findProject([]))?.stack

/** @throws {UsageError} without one */
export async function stackName(sent: string | undefined): Promise<string> {
  const name = await knownStack(sent)
  if (name === undefined) throw new UsageError('Name the stack: --stack NAME, or stack in gatewright.yaml.')
  return name
}

export const pathOfStack = (name: string): string => `/blueprints/stacks/${encodeURIComponent(name)}/`

export const readStack = (client: Client, name: string) => read(client, pathOfStack(name), detail)

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const [verb = 'list', ...names] = positionals
  const { client, output } = await open(values)
  if (verb === 'list' && names.length === 0) {
    const stacks = await readAll(client, '/blueprints/stacks/', summary, 'name')
    output.json(stacks)
    for (const each of stacks) output.line(lineOf(each))
    return exitCodes.done
  }
  if (verb === 'show' && names.length <= 1) {
    const stack = await readStack(client, await stackName(names[0] ?? values.stack))
    output.json(stack)
    output.line(lineOf(stack))
    output.line(shown(`  last run    ${[stack.run ?? 'none', placeOf(stack.pipeline)].filter(Boolean).join('  ')}`))
    output.line(`  run before  ${stack.run_before ?? 'none'}`)
    for (const each of stack.members) output.line(`  ${memberLine(each)}`)
    return exitCodes.done
  }
  const [model, name, ...others] = names
  if (verb !== 'forget' || model === undefined || name === undefined || others.length > 0)
    throw new UsageError('It takes: gatewright stack list, stack show [NAME], or stack forget MODEL NAME')
  const stack = await stackName(values.stack)
  const path = `${pathOfStack(stack)}members/${encodeURIComponent(model)}/${encodeURIComponent(name)}/`
  readAnswer(client, await sendUntilAnswered(client, 'DELETE', path), z.null())
  output.json({ stack, forgotten: { model, name } })
  output.line(shown(`${model} ${JSON.stringify(name)} stays without stack ${stack}`))
  return exitCodes.done
}

const lineOf = ({ name, size, left_over: left, owners }: z.output<typeof summary>): string =>
  shown(
    `${name}: ${size} ${size === 1 ? 'object' : 'objects'}${left > 0 ? `, ${left} left over` : ''}${owners.length > 0 ? `, of ${owners.join(', ')}` : ''}`,
  )

function memberLine({ model, name, owner, left_at: left }: z.output<typeof member>): string {
  const since = left === null ? '' : ` left over since ${left.slice(0, 19)}`
  return shown(`${model} ${JSON.stringify(name)}${owner === null ? '' : ` of ${owner}`}${since}`)
}
