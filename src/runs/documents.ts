import type { Db } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Keyring } from '../db/seal.ts'
import type { Blueprint } from '../document/document.ts'
import { parse } from '../document/yaml.ts'
import { Problem } from '../errors.ts'
import type { Conditions } from '../plan/engine.ts'
import { sealedColumn } from './ledger.ts'
import { isFinished } from './life.ts'
import { conditionsOf } from './options.ts'

/** The documents of former runs. */

type Stored = {
  readonly id: string
  readonly blueprint: string | null
  readonly document: Uint8Array<ArrayBuffer> | null
}

/** A sealed document; null when it is gone. */
export type SealedDocument = { readonly holder: string; readonly blueprint: string | null }

/** The sealed document and the run that holds it: a later one, when that changed nothing. */
export async function readDocument(db: Db, { id, blueprint, document }: Stored): Promise<SealedDocument> {
  if (blueprint !== null || document === null) return { holder: id, blueprint }
  const latest = await db.run.findFirst({
    where: { document, blueprint: { not: null } },
    select: { id: true, blueprint: true },
  })
  return { holder: latest?.id ?? id, blueprint: latest?.blueprint ?? null }
}

/** @throws when it was sealed under another key, or by a version with another form */
export const openDocument = (
  keyring: Keyring,
  { holder, blueprint }: { readonly holder: string; readonly blueprint: string },
): Blueprint => parse(keyring.open(blueprint, sealedColumn(holder, 'blueprint')))

const formerSelect = {
  ...{ id: true, state: true, title: true, kind: true, slug: true, submitterPk: true },
  ...{ blueprint: true, document: true, options: true },
} satisfies Prisma.RunSelect

/** A run whose document is to be applied again. */
export type FormerRun = Prisma.RunGetPayload<{ select: typeof formerSelect }>

export const readFormerRun = (db: Db, id: string): Promise<FormerRun | null> =>
  db.run.findUnique({ where: { id }, select: formerSelect })

/**
 * The document of a run that has ended, with the conditions under which it was submitted.
 *
 * @throws {Problem} `conflict` for a run that has not ended, and when its document cannot be read any more
 */
export async function documentOf(
  db: Db,
  keyring: Keyring,
  run: FormerRun,
): Promise<{ readonly blueprint: Blueprint; readonly conditions: Conditions }> {
  if (!isFinished(run.state)) throw new Problem('conflict', 'This run has not ended: wait for its outcome.')
  const { holder, blueprint } = await readDocument(db, run)
  if (blueprint === null) throw new Problem('conflict', 'The document of this run is no longer stored: send it again.')
  try {
    return { blueprint: openDocument(keyring, { holder, blueprint }), conditions: conditionsOf(run) }
  } catch (cause) {
    const why = 'it was sealed under another SECRET_KEY, or by another version'
    throw new Problem('conflict', `The document of this run cannot be opened: ${why}. Send it again.`, { cause })
  }
}
