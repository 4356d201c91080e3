import { readForeign } from '../../document/yaml.ts'
import { Problem } from '../../errors.ts'
import { isObject } from '../../json-object.ts'
import { problemLines } from '../text-file.ts'

/** The documents of a file, and those in the data of ConfigMap and Secret manifests. */

export type Source = {
  /** The file, the number of the document where it holds several, and the key in a manifest. */
  readonly name: string
  readonly text: string
  readonly written: unknown
}

export type Skipped = {
  readonly name: string
  readonly why: string
  /** Whether it could not be read; false: it holds no blueprint. */
  readonly isWrong: boolean
}

export function sourcesIn(name: string, given: string): (Source | Skipped)[] {
  const text = given.replace(/^\uFEFF/, '')
  try {
    const documents = readForeign(text).filter((each) => (each ?? '') !== '')
    if (documents.length === 0) return [{ name, why: 'It is empty.', isWrong: false }]
    return documents.flatMap((written, index) =>
      inDocument(documents.length === 1 ? name : `${name} document ${index + 1}`, text, written),
    )
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return [{ name, why: problemLines('', error).join(' '), isWrong: true }]
  }
}

function inDocument(name: string, text: string, written: unknown): (Source | Skipped)[] {
  const { kind, apiVersion, items } = isObject(written) ? written : {}
  if (typeof kind === 'string' && typeof apiVersion === 'string' && Array.isArray(items))
    return items.flatMap((item, index) => inDocument(`${name} item ${index + 1}`, text, item))
  if (kind !== 'ConfigMap' && kind !== 'Secret') return [{ name, text, written }]
  const { data, stringData, binaryData } = Object(written)
  const plain = { ...(kind === 'Secret' ? {} : data), ...stringData }
  const encoded = { ...(kind === 'Secret' ? data : {}), ...binaryData }
  const texts = [
    ...Object.entries(encoded).map(([key, value]) => [key, Buffer.from(String(value), 'base64').toString()] as const),
    ...Object.entries(plain).map(([key, value]) => [key, String(value)] as const),
  ]
  if (texts.length === 0) return [{ name, why: 'The manifest has no data.', isWrong: false }]
  return texts.flatMap(([key, value]) => {
    if (/\.(ya?ml|json)$/i.test(key)) return sourcesIn(`${name} ${key}`, value)
    return [{ name: `${name} ${key}`, why: 'Its name does not end in .yaml, .yml or .json.', isWrong: false }]
  })
}
