import { isFromCaller } from '../document/generate.ts'
import { findSpots } from '../document/places.ts'
import { Expression, isTag } from '../document/tags.ts'
import type { FieldPath } from '../errors.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'
import { isForm } from '../plan/placeholders.ts'

/** JSON has no tags: `{"env": "NAME"}` stands for `!Env NAME` there, and `{"file": "path"}` for `!File path`. */

/** Whether a text may hold one. */
export const mayHoldForms = (text: string): boolean => /\b(env|file)["']?\s*:/.test(text)

/**
 * The document with tags in their place. Objects of free form, such as `attributes` and the context, keep theirs: they are values.
 *
 * @param written as it was read, with its tags
 */
export function withTags(written: unknown, text: string, registry: Registry): unknown {
  const found: { readonly path: FieldPath; readonly value: Parameters<typeof tagOf>[0] }[] = []
  const place = (value: unknown, path: FieldPath, isDeep: boolean): unknown => {
    if (isFromCaller(value)) {
      found.push({ path, value })
      return new Pending(found.length - 1)
    }
    if (Array.isArray(value)) return value.map((item, index) => place(item, [...path, index], true))
    if (!isDeep || !isObject(value) || isTag(value)) return value
    return mapped(value, (inner, name) => place(inner, [...path, name], true))
  }
  /** The fields of a model. */
  const fields = (sent: unknown, path: FieldPath, model: unknown): unknown => {
    const known = registry.byName(String(model))?.fields
    if (!isObject(sent) || isTag(sent)) return sent
    return mapped(sent, (value, name) => {
      const field = known?.get(name)
      if (field === undefined || (isObject(value) && !isForm(value, field) && !field.secret)) return value
      return place(value, [...path, name], field.secret)
    })
  }
  const entry = (sent: unknown, path: FieldPath): unknown =>
    !isObject(sent) || isTag(sent)
      ? sent
      : mapped(sent, (value, name) =>
          name === 'attrs' || name === 'identifiers'
            ? fields(value, [...path, name], sent.model)
            : place(value, [...path, name], true),
        )
  const entries = (list: unknown, path: FieldPath): unknown =>
    Array.isArray(list) ? list.map((each, index) => entry(each, [...path, index])) : list
  if (!isObject(written) || isTag(written)) return written
  const { provider_model } = written
  const whole = mapped(written, (value, name) => {
    if (name === 'context') return value
    if (name === 'app') return fields(value, [name], 'service_core.application')
    if (name === 'provider') return fields(value, [name], provider_model)
    if (name !== 'entries') return place(value, [name], true)
    if (!isObject(value) || isTag(value)) return entries(value, [name])
    return mapped(value, (list, section) => entries(list, [name, section]))
  })
  if (found.length === 0) return written
  const paths = found.map(({ path }) => path)
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  const offsets = findSpots(text, paths, () => 'shown').map(
    (spot) => (starts[(spot?.line ?? 1) - 1] ?? 0) + (spot?.column ?? 1) - 1,
  )
  const tags = found.map(({ value }, index) => tagOf(value, offsets[index]))
  return replaced(whole, tags)
}

class Pending {
  readonly index: number
  constructor(index: number) {
    this.index = index
  }
}

const tagOf = (form: { readonly env: string } | { readonly file: string }, offset: number | undefined): Expression =>
  'env' in form ? new Expression('!Env', [form.env], offset) : new Expression('!File', [form.file], offset)

function replaced(value: unknown, tags: readonly Expression[]): unknown {
  if (value instanceof Pending) return tags[value.index]
  if (Array.isArray(value)) return value.map((item) => replaced(item, tags))
  return isObject(value) && !isTag(value) ? mapped(value, (inner) => replaced(inner, tags)) : value
}

const mapped = (value: JsonObject, change: (inner: unknown, name: string) => unknown): JsonObject =>
  Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, change(inner, name)]))
