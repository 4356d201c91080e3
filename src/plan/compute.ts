import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import type { Values } from '../models/define.ts'
import { expiresOf, overlapEnd } from '../models/overlap.ts'
import type { Diff, Entry } from './diff.ts'
import type { Engine } from './engine.ts'
import type { Loader } from './load.ts'
import type { Step } from './step.ts'
import { toValues } from './storage.ts'

/**
 * Adds the values that the model computes from other values, the time and the row before, and the ends of the overlaps of secrets
 * that change.
 */
export async function compute(
  { step, row, errors }: Entry,
  rowDiff: Diff,
  { loader, engine: { keyring, tokenMaxDays } }: { readonly loader: Loader; readonly engine: Engine },
): Promise<Diff> {
  const { model, path } = step
  const { action, changed } = rowDiff
  const overlaps = overlapsOf(step, rowDiff)
  const isComputed = model.compute !== undefined && (action === 'create' || action === 'update')
  if (!isComputed && overlaps.length === 0) return rowDiff
  const at = await now(loader.reader)
  const withEnds = { ...rowDiff.values, ...endsOf(overlaps, at) }
  if (model.compute === undefined) return { ...rowDiff, values: withEnds }
  const before = row === undefined ? undefined : toValues(model, row, keyring)
  const moment = { before, now: at, tokenMaxDays }
  const values = model.compute(withEnds, moment, (at, code, message) => errors.add([...path, ...at], code, message))
  const fields = [...model.fields.keys()].filter(
    (name) => changed.includes(name) || !isDeepStrictEqual(values[name], rowDiff.values[name]),
  )
  return { ...rowDiff, values, changed: fields }
}

/** An empty secret gets no overlap: any client could log in with it. */
const overlapsOf = ({ overlaps = new Map() }: Step, { action, changed, before }: Diff): [string, string][] =>
  [...overlaps].filter(([name]) => action === 'update' && changed.includes(name) && Boolean(before?.[name]))

const endsOf = (overlaps: readonly [string, string][], from: Date): Values =>
  Object.fromEntries(overlaps.map(([name, time]) => [expiresOf(name), overlapEnd(time, from)]))

/** The database's clock: processes on several machines must agree on what has expired. */
async function now(reader: EngineReader): Promise<Date> {
  const [row] = await reader.query(z.object({ now: z.date() }), { text: 'SELECT now()', values: [] })
  if (row === undefined) throw new Error('SELECT now() returned no row')
  return row.now
}
