import { isDeepStrictEqual } from 'node:util'
import { now, type Queryable } from '../db/client.ts'
import type { Keyring } from '../db/seal.ts'
import type { Faults } from '../errors.ts'
import type { Step } from './compile.ts'
import { unpack } from './rows.ts'
import type { Settled } from './settle.ts'
import type { Row } from './statements.ts'

/** Puts in what follows from the other values, from the time, or from what the row was. Other models ask nothing. */
export async function derive(
  q: Queryable,
  { model, path }: Step,
  row: Row | undefined,
  settled: Settled,
  { keyring, tokenMaxDays }: { readonly keyring: Keyring; readonly tokenMaxDays: number },
  faults: Faults,
): Promise<Settled> {
  const { action, changed } = settled
  if (model.derive === undefined || (action !== 'create' && action !== 'update')) return settled
  const before = row === undefined ? undefined : unpack(model, row, keyring)
  const moment = { before, now: await now(q), tokenMaxDays }
  const values = model.derive(settled.values, moment, (at, message) => faults.add([...path, ...at], message))
  const members = [...model.members.keys()].filter(
    (name) => changed.includes(name) || !isDeepStrictEqual(values[name], settled.values[name]),
  )
  return { ...settled, values, changed: members }
}
