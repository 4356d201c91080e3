import { isFromCaller } from '../document/generate.ts'
import { nodesOf } from '../document/nodes.ts'
import { Expression, isTag } from '../document/tags.ts'
import type { FieldPath } from '../errors.ts'
import { isObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'
import { isForm } from '../plan/placeholders.ts'

/** JSON has no tags: `{"env": "NAME"}` stands for `!Env NAME` there, and `{"file": "path"}` for `!File path`. */

/** Whether a text may hold such an object. */
export const mayHoldForms = (text: string): boolean => /\b(env|file)["']?\s*:/.test(text)

/**
 * Replaces these objects by tags. Those inside of objects of free form, such as `attributes`, labels and the context, are kept:
 * they are values.
 *
 * @param written the value that was read, with its tags
 */
export function withTags(written: unknown, text: string, registry: Registry): unknown {
  if (!isObject(written) || isTag(written)) return written
  const { provider_model } = written
  let offsets: ReadonlyMap<string, number> | undefined
  const tagFor = (form: FromCaller, path: FieldPath) => {
    offsets ??= offsetsIn(text)
    const [name, content] = 'env' in form ? (['!Env', form.env] as const) : (['!File', form.file] as const)
    return new Expression(name, [content], offsets.get(JSON.stringify(path)) ?? 0)
  }
  const visit = (holder: object, path: FieldPath, isValue: IsValue): void => {
    for (const [name, value] of Object.entries(holder)) {
      if (typeof value !== 'object' || value === null || isTag(value) || isValue(name, value)) continue
      const at = [...path, Array.isArray(holder) ? Number(name) : name]
      if (isFromCaller(value)) Reflect.set(holder, name, tagFor(value, at))
      else visit(value, at, valuesIn(at, holder))
    }
  }
  /** Whether members of an object are values: those of free form of a model are, and no others. */
  const valuesIn = (path: FieldPath, { model }: { readonly model?: unknown }): IsValue => {
    const [first, last] = [path[0], path.at(-1)]
    const isEntry = first === 'entries' && typeof model === 'string' && (last === 'attrs' || last === 'identifiers')
    if (path.length === 1 && first === 'app') return freeFields('service_core.application')
    if (path.length === 1 && first === 'provider') return freeFields(provider_model)
    return isEntry ? freeFields(model) : (name) => first === 'metadata' && name === 'labels'
  }
  const freeFields = (model: unknown): IsValue => {
    const fields = registry.byName(String(model))?.fields
    return (name, value) => {
      const field = fields?.get(name)
      return field === undefined || (isObject(value) && !isForm(value, field))
    }
  }
  visit(written, [], (name) => name === 'context')
  return written
}

const offsetsIn = (text: string) =>
  new Map(nodesOf(text).flatMap(({ isKey, path, start }) => (isKey ? [] : [[JSON.stringify(path), start] as const])))

type FromCaller = { readonly env: string } | { readonly file: string }
type IsValue = (name: string, value: object) => boolean
