import type { Registry } from '../models/registry.ts'
import type { Blueprint } from './document.ts'
import { isForNew, isGenerate, isOverlap, isWithOverlap, keptForm } from './generate.ts'

/** @returns a copy of the document with the value of every secret field masked */
export function mask(blueprint: Blueprint, registry: Registry): Blueprint {
  const entries = blueprint.entries.map((entry) => {
    const model = registry.byName(entry.model)
    // A field that the model does not have is masked too: it may hold a secret.
    const isPublic = (name: string, value: unknown) => {
      const field = model?.fields.get(name)
      return (
        value === null || (field !== undefined && !field.secret) || (field?.generate !== undefined && isGenerate(value))
      )
    }
    const maskedValue = (name: string, value: unknown) => {
      const field = model?.fields.get(name)
      if (field?.secret === true && isForNew(value)) return { create: value.create === null ? null : keptForm }
      if (field?.overlap !== true || !isWithOverlap(value) || !isOverlap(value.overlap)) return keptForm
      const { overlap, ...asked } = value
      return { ...(isGenerate(asked) ? asked : { value: keptForm }), overlap }
    }
    const attrs = Object.entries(entry.attrs).map(([name, value]) => [
      name,
      isPublic(name, value) ? value : maskedValue(name, value),
    ])
    return { ...entry, attrs: Object.fromEntries(attrs) }
  })
  return { ...blueprint, entries }
}
