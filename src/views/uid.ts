import { hash } from 'node:crypto'
import { oncePerDb } from '../db/once.ts'

/** The `uid` of a user: a digest of `<pk>-<installation id>`, so that the users of two installations differ. */
export type UidOf = (pk: number) => string

/** Reads the installation's id. Call it before a transaction: inside of one it would wait for a second connection. */
export const readUidOf = oncePerDb(async (db): Promise<UidOf> => {
  const { id } = await db.installation.findFirstOrThrow({ select: { id: true } })
  return (pk) => hash('sha256', `${pk}-${id}`)
})
