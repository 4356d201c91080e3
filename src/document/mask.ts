import type { Registry } from '../models/registry.ts'
import type { Blueprint } from './document.ts'
import { isGenerate } from './generate.ts'

export const masked = '********'

/** @returns a copy of the document with the value of every secret field masked */
export function mask(blueprint: Blueprint, registry: Registry): Blueprint {
  const entries = blueprint.entries.map((entry) => {
    const model = registry.byName(entry.model)
    // A field that the model does not have is masked too: it may hold a secret.
    const isPublic = (name: string, value: unknown) => {
      const field = model?.fields.get(name)
      return value === null || field?.secret === false || (field?.generate !== undefined && isGenerate(value))
    }
    const attrs = Object.entries(entry.attrs).map(([name, value]) => [name, isPublic(name, value) ? value : masked])
    return { ...entry, attrs: Object.fromEntries(attrs) }
  })
  return { ...blueprint, entries }
}
