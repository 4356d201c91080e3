import type { FieldPath } from '../errors.ts'
import { isObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'

/**
 * The visibility of a value in a line of the document's text. `masked`: it may hold a secret, such as a field that the model does
 * not have. `secret`: the field is one. Undefined: the values below it decide.
 */
export type Visibility = 'shown' | 'masked' | 'secret' | undefined

/** @param path the path of a value: `['entries', 3, 'attrs', 'name']` */
export type VisibilityOf = (path: FieldPath) => Visibility

const ofEntry = new Set<string | number>(['model', 'id', 'state', 'was', 'owner'])
const ofDocument = new Set<string | number>(['version', 'owner', 'prune'])

/**
 * The visibility of the values of a blueprint or a submission, by the models that it names. A value is masked unless it is known
 * to be harmless.
 */
export function lookAt(value: unknown, registry: Registry): VisibilityOf {
  const document = isObject(value) ? value : {}
  const entries: readonly unknown[] = Array.isArray(document.entries) ? document.entries : []
  const ofField = (model: unknown, name: string | number): Visibility => {
    if (name === 'pk') return 'shown'
    const field = typeof model === 'string' ? registry.byName(model)?.fields.get(String(name)) : undefined
    if (field === undefined) return 'masked'
    return field.secret ? 'secret' : 'shown'
  }
  return ([first, second, third, fourth]) => {
    if (first === undefined) return undefined
    switch (first) {
      case 'entries': {
        if (third === undefined) return undefined
        if (third !== 'attrs' && third !== 'identifiers') return ofEntry.has(third) ? 'shown' : 'masked'
        const entry = entries[Number(second)]
        return fourth === undefined ? undefined : ofField(isObject(entry) ? entry.model : undefined, fourth)
      }
      case 'metadata':
        return second === undefined ? undefined : second === 'name' ? 'shown' : 'masked'
      case 'app':
        return second === undefined ? undefined : second === 'was' ? 'shown' : ofField(applicationModel, second)
      case 'provider':
        if (second === undefined) return undefined
        return second === 'was' ? 'shown' : ofField(document.provider_model, second)
      default:
        return ofDocument.has(first) || first === 'provider_model' ? 'shown' : 'masked'
    }
  }
}

const applicationModel = 'service_core.application'
