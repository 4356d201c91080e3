import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { CORE_SCHEMA, defineScalarTag, defineSequenceTag, load } from 'js-yaml'
import { expect } from 'vitest'
import { print } from '../../../src/document/yaml.ts'
import { adminToken, freshFolder, type Installation, installation } from '../../support/kit.ts'
import { run } from '../../support/processes.ts'
import { configuration } from './configuration.ts'
import { emptied, nameOf, type Stored, stored } from './stored.ts'

/** Export, apply to an empty installation, export there: the same text, and the same rows. */

export async function openRoundTrip() {
  const folder = freshFolder()
  const [source, target] = [await opened(), await opened()]
  const file = (name: string) => join(folder, name)
  const gatewright = async (on: Opened, args: string[], env: Record<string, string> = {}) => {
    const environment = { GATEWRIGHT_URL: on.url, GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder, ...env }
    const running = run('bin/gatewright.mjs', { args, env: environment })
    const { code } = await running.exited
    return { code, output: running.output() }
  }
  const exportFrom = async (on: Opened, name: string): Promise<string> => {
    const { code, output } = await gatewright(on, ['export', '--out', file(name)])
    expect(code, output).toBe(0)
    return readFileSync(file(name), 'utf8')
  }

  /** @returns the document, and what the first installation has */
  async function roundTrip(yaml: string | null): Promise<{ text: string; rows: Stored }> {
    for (const each of [source, target]) await emptied(each.on)
    if (yaml !== null) {
      writeFileSync(file('source.yaml'), yaml)
      const { code, output } = await gatewright(source, ['apply', file('source.yaml')])
      expect(code, output).toBe(0)
    }
    const text = await exportFrom(source, 'first.yaml')
    const rows = await stored(source.on)
    const env = variablesOf(text, rows, source.on)
    const applied = await gatewright(target, ['apply', file('first.yaml')], env)
    expect(applied.code, applied.output).toBe(0)
    expect(await stored(target.on)).toEqual(rows)
    expect(await exportFrom(target, 'second.yaml')).toBe(text)
    const again = await gatewright(target, ['apply', file('first.yaml'), '--json'], env)
    expect(JSON.parse(again.output)).toMatchObject({ exit: 0, results: [{ outcome: 'unchanged' }] })
    const { results } = JSON.parse(again.output) as { results: [{ logs: string[] }] }
    expect(results[0].logs.filter((line) => !line.endsWith(' unchanged'))).toEqual([])
    return { text, rows }
  }

  return {
    source: source.on,
    roundTrip,
    random: (numRuns: number) => {
      const any = configuration(source.on.engine.registry)
      const property = fc.asyncProperty(any, async (blueprint) => void (await roundTrip(print(blueprint))))
      // A smaller example takes as long as a run, many times.
      return fc.assert(property, { numRuns, endOnFailure: true })
    },
  }
}

type Opened = { on: Installation; url: string }

async function opened(): Promise<Opened> {
  const on = await installation()
  return { on, url: await on.app.listen({ port: 0, host: '127.0.0.1' }) }
}

/** Where the document takes a variable. */
class Env {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

const withTags = CORE_SCHEMA.withTags(
  defineScalarTag<Env>('!Env', { resolve: (name) => new Env(name), identify: () => false }),
  defineScalarTag<string>('!KeyOf', { resolve: (id) => id, identify: () => false }),
  defineSequenceTag<unknown[], Env>('!Env', {
    create: () => [],
    addItem: (items, item) => void items.push(item),
    finalize: ([name]) => new Env(String(name)),
    identify: () => false,
  }),
)

/** The secrets of these rows, as the variables of the document. One that is empty is not set. */
function variablesOf(text: string, rows: Stored, { engine }: Installation): Record<string, string> {
  const document = load(text, { schema: withTags }) as {
    entries: { model: string; identifiers: Record<string, unknown>; attrs: Record<string, unknown> }[]
  }
  const found = document.entries.flatMap(({ model, identifiers, attrs }) => {
    const declared = engine.registry.byName(model)
    if (declared === undefined) throw new Error(`there is no ${model}`)
    const row = rows[nameOf(declared, { ...attrs, ...identifiers })]
    return Object.entries(attrs).flatMap(([field, sent]) => {
      const value = declared.fields.get(field)?.secret ? (Object(sent).create ?? sent) : sent
      if (!(value instanceof Env)) return []
      const secret = row?.[field]
      return [[value.name, typeof secret === 'string' ? secret : JSON.stringify(secret)] as const]
    })
  })
  expect(new Set(found.map(([name]) => name)).size).toBe(found.length)
  return Object.fromEntries(found)
}
