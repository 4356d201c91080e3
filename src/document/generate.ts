import { isObject } from '../json-object.ts'

/** The value of a field for which the service shall generate a new one, each time that the document is applied. */
export const generateForm = { generate: true } as const

export const isGenerate = (value: unknown): boolean =>
  isObject(value) && value.generate === true && Object.keys(value).length === 1
