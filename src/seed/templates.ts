import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { Registry } from '../models/index.ts'
import type { ProviderModel } from '../models/provider.ts'
import { reasonOf, StartError } from '../start-error.ts'

/** A shipped submission of a kind, after which applications and providers are made. */
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

/** @throws {StartError} where the project was installed without its examples */
export function readTemplates({ kinds }: Pick<Registry, 'kinds'>): Promise<Template[]> {
  return Promise.all(
    [...kinds].map(async ([kind, model]) => {
      const file = new URL(`${kind}.json`, examples)
      const text = await readFile(file, 'utf8').catch((error: unknown) => {
        throw new StartError(
          `examples/${kind}.json, after which applications are made, cannot be read (${reasonOf(error)}): seed from a whole copy of the project.`,
          { cause: error },
        )
      })
      return { model, ...submission.parse(JSON.parse(text)) }
    }),
  )
}
