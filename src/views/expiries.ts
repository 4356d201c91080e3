import { setImmediate } from 'node:timers/promises'
import type { Db } from '../db/client.ts'
import { endOfCertificate } from '../models/pem.ts'

/** @property token of those that authenticate @property certificate of those that a provider uses; it may have passed */
export type Expiries = { readonly token: Date | null; readonly certificate: Date | null }

/** When the next token and the first certificate expire; null when none does. */
export async function readExpiries(db: Db): Promise<Expiries> {
  const { _min } = await db.token.aggregate({
    _min: { expires: true },
    where: { intent: 'api', expiring: true, expires: { gt: new Date() }, user: { isActive: true } },
  })
  return { token: _min.expires, certificate: await firstCertificate(db) }
}

/** Certificates that are read at once, and at most: reading one takes a tenth of a millisecond. */
const portion = 200
const maxPortions = 50

async function firstCertificate(db: Db): Promise<Date | null> {
  let first: Date | null = null
  let after = ''
  for (let done = 0; done < maxPortions; done += 1) {
    const rows = await db.certificateKeyPair.findMany({
      select: { pk: true, certificateData: true },
      where: { referencedBy: { some: {} } },
      orderBy: { pk: 'asc' },
      take: portion,
      ...(after !== '' && { cursor: { pk: after }, skip: 1 }),
    })
    for (const { certificateData } of rows) {
      const end = endOfCertificate(certificateData)
      if (end !== undefined && (first === null || end < first)) first = end
    }
    after = rows.at(-1)?.pk ?? ''
    if (rows.length < portion) break
    await setImmediate()
  }
  return first
}
