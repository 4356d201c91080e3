import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { ProviderModel } from '../../src/models/provider.ts'
import type { Registry } from '../../src/models/registry.ts'
import { reasonOf, StartError } from '../../src/start-error.ts'

/** A shipped submission of a provider kind. Seeded applications and providers are copies of it. */
export type Template = {
  readonly model: ProviderModel
  readonly app: Readonly<Record<string, unknown>> & { readonly name: string; readonly slug: string }
  readonly provider: Readonly<Record<string, unknown>> & { readonly name: string }
}

const submission = z.object({
  app: z.looseObject({ name: z.string(), slug: z.string() }),
  provider: z.looseObject({ name: z.string() }),
})

const examples = new URL('../../examples/', import.meta.url)

/**
 * @returns a template for each kind with an example, and the kinds without one
 * @throws {StartError} when there is none at all, or one cannot be read
 */
export async function readTemplates({ kinds }: Pick<Registry, 'kinds'>): Promise<{
  readonly templates: readonly Template[]
  readonly missing: readonly string[]
}> {
  const templates: Template[] = []
  const missing: string[] = []
  for (const [kind, model] of kinds) {
    const text = await read(kind)
    if (text === null) missing.push(kind)
    else templates.push({ model, ...submission.parse(JSON.parse(text)) })
  }
  if (templates.length === 0)
    throw new StartError('There are no examples to seed applications from: seed from a whole copy of the project.')
  return { templates, missing }
}

async function read(kind: string): Promise<string | null> {
  try {
    return await readFile(new URL(`${kind}.json`, examples), 'utf8')
  } catch (error) {
    if (reasonOf(error) === 'ENOENT') return null
    throw new StartError(`examples/${kind}.json cannot be read (${reasonOf(error)}).`, { cause: error })
  }
}
