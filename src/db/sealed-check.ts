import { StartError } from '../start-error.ts'
import type { Db, Tx } from './client.ts'
import { throwProblem } from './errors.ts'
import type { Keyring, SealedPlace } from './seal.ts'

/**
 * The check value of an installation: a sealed value that only shows whether SECRET_KEY opens it. A service with another key
 * would start, and fail at the first secret.
 */

const checkText = 'gatewright'
const placeOf = (row: string): SealedPlace => ({ table: 'installation', row, column: 'sealed_check' })

export const sealedCheck = (keyring: Keyring, installation: string): string =>
  keyring.seal(checkText, placeOf(installation))

/** @returns null when SECRET_KEY, or SECRET_KEY_PREVIOUS, is the key of this database; else why not */
export async function judgeSecretKey(db: Db | Tx, keyring: Keyring): Promise<string | null> {
  const [installation] = await db.installation.findMany({ select: { id: true, sealedCheck: true } })
  if (installation === undefined || installation.sealedCheck === null) return null
  try {
    keyring.open(installation.sealedCheck, placeOf(installation.id))
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Refuses to start under another SECRET_KEY. @throws {StartError} */
export async function requireSecretKey(db: Db | Tx, keyring: Keyring): Promise<void> {
  const why = await judgeSecretKey(db, keyring).catch(throwProblem)
  if (why !== null)
    throw new StartError(
      `SECRET_KEY is not the key of this database (what it holds was ${why}): set the right one, or set the one before it as SECRET_KEY_PREVIOUS.`,
    )
}
