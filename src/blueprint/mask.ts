import type { Registry } from '../models/index.ts'
import type { Blueprint } from './document.ts'

export const masked = '********'

/** The document as it may be shown: the same, with every secret member's value masked. */
export function mask(blueprint: Blueprint, registry: Registry): Blueprint {
  const entries = blueprint.entries.map((entry) => {
    const model = registry.byName(entry.model)
    // A member that the model does not store is masked too: nobody can say what it is.
    const isPublic = (name: string, value: unknown) => value === null || model?.members.get(name)?.secret === false
    const attrs = Object.entries(entry.attrs).map(([name, value]) => [name, isPublic(name, value) ? value : masked])
    return { ...entry, attrs: Object.fromEntries(attrs) }
  })
  return { ...blueprint, entries }
}
