import type { Part } from '../../src/cli/places.ts'

/** A file of a document, with a number of entries. */
export const partOf = (file: string, from: number, count: number): Part => ({
  document: { file, form: 'blueprint', value: {}, text: '' },
  from,
  entries: Array.from({ length: count }, () => ({ entry: {}, place: [] })),
})
