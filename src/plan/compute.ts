import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import type { Keyring } from '../db/seal.ts'
import type { ErrorList } from '../errors.ts'
import type { Step } from './compile.ts'
import type { Diff } from './diff.ts'
import type { Row } from './statements.ts'
import { toValues } from './storage.ts'

/** Adds the values that the model computes from the others, from the time and from the row as it was. */
export async function compute(
  reader: EngineReader,
  { model, path }: Step,
  row: Row | undefined,
  rowDiff: Diff,
  { keyring, tokenMaxDays }: { readonly keyring: Keyring; readonly tokenMaxDays: number },
  errors: ErrorList,
): Promise<Diff> {
  const { action, changed } = rowDiff
  if (model.compute === undefined || (action !== 'create' && action !== 'update')) return rowDiff
  const before = row === undefined ? undefined : toValues(model, row, keyring)
  const moment = { before, now: await now(reader), tokenMaxDays }
  const values = model.compute(rowDiff.values, moment, (at, message) => errors.add([...path, ...at], message))
  const fields = [...model.fields.keys()].filter(
    (name) => changed.includes(name) || !isDeepStrictEqual(values[name], rowDiff.values[name]),
  )
  return { ...rowDiff, values, changed: fields }
}

/** The database's clock: processes on several machines must agree on what has expired. */
async function now(reader: EngineReader): Promise<Date> {
  const [row] = await reader.query(z.object({ now: z.date() }), { text: 'SELECT now()', values: [] })
  if (row === undefined) throw new Error('SELECT now() returned no row')
  return row.now
}
