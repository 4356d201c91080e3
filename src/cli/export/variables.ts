import type { Field } from '../../models/define.ts'
import { digestOf, labelOf, naturalKey, type Row } from './rows.ts'

/** The variables in place of secrets. Their names follow from the rows alone. */

export type Secret = { readonly row: Row; readonly field: Field }

export type Variable = Secret & {
  readonly name: string
  /** Whether the service takes an empty text too. No variable can hold it: a variable that is not set means it. */
  readonly mayBeEmpty: boolean
  /** Whether it is an object, which the variable holds as JSON. */
  readonly isJson: boolean
}

/** No program has such variables: a provider with the name `azure` must not take the secret of a CI system. */
const prefix = 'GW_'

/**
 * Names variables: `GW_GRAFANA_CLIENT_SECRET`. A name that two could have goes to neither: both get a longer one, so that the
 * order of the rows makes no difference.
 */
export function nameVariables(secrets: readonly Secret[]): readonly Variable[] {
  const candidates = secrets.map(candidatesOf)
  const all = Map.groupBy(candidates.flat(), (name) => name)
  return secrets.map((secret, index) => {
    const names = candidates[index] ?? []
    const name = names.find((each) => all.get(each)?.length === 1) ?? names.at(-1) ?? ''
    return { ...secret, name, ...formOf(secret) }
  })
}

/** The possible names, from short to long. Only this field of this row has the last one. */
function candidatesOf({ row, field }: Secret): string[] {
  const name = asVariable(Object.values(naturalKey(row)).join(' '))
  const short = [name, asVariable(field.name)].join('_')
  const long = [asVariable(row.model.resource), name, asVariable(field.name)].filter((part) => part !== '').join('_')
  const names = [...(name === '' ? [] : [short]), long, `${long}_${digestOf(row).toUpperCase()}`]
  return names.map((each) => `${prefix}${each}`)
}

const asVariable = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toUpperCase()
    .replace(/[^A-Z\d]+/g, '_')
    .replace(/^_|_$/g, '')

function formOf({ row: { model, values }, field: { name, schema } }: Secret) {
  const wrong: unknown[] = []
  model.rules?.({ ...values, [name]: '' }, ([at]) => void wrong.push(at))
  return {
    mayBeEmpty: schema.safeParse('').success && !wrong.includes(name),
    isJson: schema.safeParse({}).success,
  }
}

/** `client_secret of provider oauth2 "Grafana"` */
export function describe({ row, field, mayBeEmpty, isJson }: Variable): string {
  const notes = [...(isJson ? ['JSON'] : []), ...(mayBeEmpty ? ['empty when it is not set'] : [])]
  return `${field.name} of ${labelOf(row)}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`
}
