import { readdir } from 'node:fs/promises'
import type { ProviderModel } from './provider.ts'

/** Finds the provider kinds by their files. scripts/build-cli.mjs replaces this file by a list. */

const extension = '.ts'

/** Loads the provider kinds. Each file of the folder declares the kind that it is named after. */
export async function loadKinds(folder = new URL('./providers/', import.meta.url)): Promise<ProviderModel[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith(extension)).sort()
  return Promise.all(files.map((file) => loadKind(new URL(file, folder), file.slice(0, -extension.length))))
}

async function loadKind(url: URL, kind: string): Promise<ProviderModel> {
  const file = `models/providers/${kind}.ts`
  const loaded: { default?: unknown } = await import(url.href)
  const model = loaded.default
  if (!isProviderModel(model))
    throw new Error(`${file} does not export a provider kind: export default defineProvider({ ... }).`)
  if (model.provider.kind !== kind)
    throw new Error(`${file} declares the kind ${model.provider.kind}: a file is named after its kind.`)
  return model
}

const isProviderModel = (value: unknown): value is ProviderModel =>
  typeof value === 'object' && value !== null && 'provider' in value && 'fields' in value && value.fields instanceof Map
