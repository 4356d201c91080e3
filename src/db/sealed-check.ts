import { StartError } from '../start-error.ts'
import type { Db } from './client.ts'
import { databaseProblem } from './errors.ts'
import type { Keyring, SealedPlace } from './seal.ts'

/**
 * The check value of an installation: a sealed value that only shows whether SECRET_KEY opens it. A service with another key
 * would start, and fail at the first secret.
 */

const checkText = 'gatewright'
const placeOf = (installation: string): SealedPlace => ({
  table: 'installation',
  row: installation,
  column: 'sealed_check',
})

export const sealedCheck = (keyring: Keyring, installation: string): string =>
  keyring.seal(checkText, placeOf(installation))

/** @returns null when SECRET_KEY, or SECRET_KEY_PREVIOUS, is the key of this database; else why not */
export async function judgeSecretKey(db: Db, keyring: Keyring): Promise<string | null> {
  const [installation] = await db.installation.findMany({ select: { id: true, sealedCheck: true } })
  if (installation === undefined) return null
  const { id } = installation
  const check = installation.sealedCheck
  const sample = check === null ? await readSample(db) : { envelope: check, place: placeOf(id) }
  if (sample === null) return null
  try {
    keyring.open(sample.envelope, sample.place)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Another sealed value, for an installation that an earlier version made. */
async function readSample(db: Db): Promise<{ envelope: string; place: SealedPlace } | null> {
  const pair = await db.certificateKeyPair.findFirst({
    where: { sealedKey: { not: null } },
    select: { pk: true, sealedKey: true },
  })
  if (pair?.sealedKey != null)
    return { envelope: pair.sealedKey, place: { table: 'certificate_key_pairs', row: pair.pk, column: 'sealed_key' } }
  const run = await db.run.findFirst({ where: { blueprint: { not: null } }, select: { id: true, blueprint: true } })
  if (run?.blueprint == null) return null
  return { envelope: run.blueprint, place: { table: 'runs', row: run.id, column: 'blueprint' } }
}

/**
 * Refuses to start under another SECRET_KEY. An installation of an earlier version gets its check value.
 *
 * @throws {StartError}
 */
export async function requireSecretKey(db: Db, keyring: Keyring): Promise<void> {
  const why = await judgeSecretKey(db, keyring).catch((error: unknown) => {
    throw databaseProblem(error)
  })
  if (why !== null)
    throw new StartError(
      `SECRET_KEY is not the key of this database (what it holds was ${why}): set the right one, or set the one before it as SECRET_KEY_PREVIOUS.`,
    )
  const [missing] = await db.installation.findMany({ where: { sealedCheck: null }, select: { id: true } })
  if (missing === undefined) return
  const sample = await readSample(db)
  // `secrets rotate` writes it at its end, when the rest is no longer sealed under the previous key.
  if (sample !== null && !keyring.isOfCurrentKey(sample.envelope)) return
  await db.installation.updateMany({
    where: { id: missing.id, sealedCheck: null },
    data: { sealedCheck: sealedCheck(keyring, missing.id) },
  })
}
