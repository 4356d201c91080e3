import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { withExample } from '../example.ts'
import { inOrder, type View } from './view.ts'

/** A TOTP device, without any part of its secret. */

const schema = z
  .object({
    name: withExample(z.string().max(64), 'Phone'),
    pk: withExample(z.int(), 3),
  })
  .meta({ id: 'TotpDevice' })

async function* read(tx: Tx, keys: readonly number[]) {
  const rows = await tx.totpDevice.findMany({ where: { pk: { in: [...keys] } }, select: { name: true, pk: true } })
  yield inOrder(keys, rows, ({ pk }) => pk)
}

export const totpDeviceView = { model: 'TotpDevice', schema, read } satisfies View<'TotpDevice'>
