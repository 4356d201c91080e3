import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { JsonObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'
import { unconditional } from '../plan/engine.ts'
import { toBlueprint } from '../plan/submission.ts'
import { reasonOf, StartError } from '../start-error.ts'
import { usualFirst } from './writable.ts'

const examples = new URL('../../examples/', import.meta.url)

/**
 * The submissions in `examples/`, by kind. They work on every installation; a build may leave the folder out.
 *
 * @throws {StartError} when a kind has none, or one that does not fit its models
 */
export function submissionExamples(registry: Registry, folder = examples): JsonObject {
  if (!existsSync(folder)) return {}
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  const strange = files.find((file) => !registry.kinds.has(file.replace('.json', '')))
  if (strange !== undefined)
    throw new StartError(`examples/${strange} is named after no provider kind: rename it, or remove it.`)
  return Object.fromEntries(
    usualFirst(registry).map(({ name, provider: { kind, verboseName } }) => {
      const file = `examples/${kind}.json`
      if (!files.includes(`${kind}.json`))
        throw new StartError(`The provider kind ${kind} has no example: write ${file}, a submission with "${name}".`)
      const value = readExample(new URL(`${kind}.json`, folder), file)
      if (value.provider_model !== name)
        throw new StartError(`${file} is not a submission with "provider_model": "${name}".`)
      const { plan } = toBlueprint(value, registry, unconditional)
      const [error] = plan.errors.list
      if (error !== undefined)
        throw new StartError(`${file} does not apply: ${error.path.join('.')}: ${error.message} Correct the example.`)
      return [kind, { summary: verboseName, value }]
    }),
  )
}

function readExample(url: URL, file: string): JsonObject {
  try {
    return JSON.parse(readFileSync(url, 'utf8'))
  } catch (cause) {
    throw new StartError(`${file} is not JSON: ${reasonOf(cause)}`)
  }
}
