import { z } from 'zod'
import type { Blueprint, Entry } from '../document/document.ts'
import { isForNew, isGenerate, isWithOverlap } from '../document/generate.ts'
import { parse } from '../document/yaml.ts'
import { comparedName } from '../names.ts'
import { type Client, read } from './client.ts'
import { runSummary } from './runs.ts'

/** What the files of an application still send, as far as the last document tells that was applied. */

export type LastDocument = {
  /** The id of its run. */
  readonly run: string
  /** Its title, and when it was submitted. */
  readonly title: string
  readonly at: string
  /** What it says of the secret: a value that is set each time, one for a new object only, a new one each time, or nothing. */
  readonly sends: 'value' | 'create' | 'generate' | 'nothing'
}

type Asked = { readonly slug: string; readonly model: string; readonly provider: string; readonly field: string }

/** So many runs are read at most. */
const mostRuns = 10

/**
 * Of the newest applied run whose document has the provider. Rotations are none: they are no files.
 *
 * @returns null when no such run can be read: it was deleted, or is of another submitter
 */
export async function lastDocument(client: Client, asked: Asked, withinMs: number): Promise<LastDocument | null> {
  const endsAt = performance.now() + withinMs
  const within = () => ({ withinMs: Math.max(1, endsAt - performance.now()) })
  const { slug, provider } = asked
  // A set has no slug: it is found by what it changed.
  const filters = [{ slug }, { object: `application:${slug}` }, { object: `provider:${provider}` }]
  try {
    const pages = await Promise.all(
      filters.map((filter) => {
        const query = new URLSearchParams({ mode: 'apply', state: 'done', page_size: String(mostRuns), ...filter })
        return read(client, `/blueprints/runs/?${query}`, page, within())
      }),
    )
    const runs = new Map(pages.flatMap(({ results }) => results).map((run) => [run.id, run]))
    const applied = [...runs.values()].filter((run) => run.applied === true)
    const newest = applied.sort((one, other) => (one.created_at < other.created_at ? 1 : -1)).slice(0, mostRuns)
    for (const run of newest) {
      const { blueprint } = await read(client, `/blueprints/runs/${run.id}/`, document, within())
      const sends = whatItSends(blueprint, asked)
      if (sends !== null) return { run: run.id, title: run.title, at: run.created_at, sends }
    }
  } catch {
    // Nothing depends on it: the secret is rotated all the same.
  }
  return null
}

const page = z.object({ results: z.array(runSummary) })
const document = z.object({ blueprint: z.string() })

/** @returns null for a document that does not have the provider, or that cannot be read */
function whatItSends(text: string, { model, provider, field }: Asked): LastDocument['sends'] | null {
  const blueprint = text === '' ? null : readable(text)
  const name = comparedName(provider)
  const entry = blueprint?.entries.find(
    (each) =>
      each.model === model && typeof each.identifiers.name === 'string' && comparedName(each.identifiers.name) === name,
  )
  if (blueprint == null || entry === undefined || isRotation(blueprint, entry, field)) return null
  const value = entry.attrs[field]
  if (value === undefined || value === null) return 'nothing'
  if (isForNew(value)) return 'create'
  const { overlap: _, ...asked } = isWithOverlap(value) ? value : { overlap: null, value }
  return isGenerate(value) || isGenerate(asked) ? 'generate' : 'value'
}

/** The document of `gatewright rotate`: an application of which it says nothing, and the secret of its provider. */
const isRotation = ({ entries }: Blueprint, { attrs }: Entry, field: string): boolean =>
  entries.length === 2 &&
  Object.keys(attrs).join() === field &&
  Object.keys(entries[1]?.attrs ?? {}).join() === 'provider'

function readable(text: string): Blueprint | null {
  try {
    return parse(text)
  } catch {
    // A newer service may print what this version does not know.
    return null
  }
}
