import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { withExample } from '../example.ts'
import { inOrder, type View } from './view.ts'

/** A TOTP device, without any part of its secret. */

const schema = z
  .object({
    name: withExample(z.string().max(64), 'Phone'),
    pk: withExample(z.int(), 3),
  })
  .meta({ id: 'TotpDevice' })

export const totpDeviceSelect = { name: true, pk: true } satisfies Prisma.TotpDeviceSelect

async function* read(tx: Tx, keys: readonly number[]) {
  const rows = await tx.totpDevice.findMany({ where: { pk: { in: [...keys] } }, select: totpDeviceSelect })
  yield inOrder(keys, rows, ({ pk }) => pk)
}

export const totpDeviceView = { model: 'TotpDevice', schema, read } satisfies View<'TotpDevice'>
