import { readFile } from 'node:fs/promises'
import { type Db, patient, type Tx, transaction } from '../db/client.ts'
import { type EngineTx, withEngine } from '../db/engine-tx.ts'
import { locks } from '../db/locks.ts'
import { execute } from '../db/raw.ts'
import { sealedCheck } from '../db/sealed-check.ts'
import { parse } from '../document/yaml.ts'
import { sha256, uuid7 } from '../ids.ts'
import { system } from '../permissions.ts'
import { compile } from '../plan/compile.ts'
import { type Engine, unconditional } from '../plan/engine.ts'
import { isKeyed } from '../token-secret.ts'
import { apply } from './apply.ts'
import { audit } from './audit.ts'
import { giveNewKinds } from './deployers.ts'

/** The first start of an installation: the engine applies the bootstrap blueprint. */

const adminName = 'admin'

/**
 * Creates the rows of the blueprint once per installation: those that are deleted later, the admin too, are never created again.
 * Each later start gives the role of deployers the provider kinds that are new.
 *
 * @param firstToken returns the admin's token; called at the first start only, before anything is committed
 * @returns whether this is the first start
 */
export async function bootstrap(db: Db, engine: Engine, firstToken: () => string): Promise<boolean> {
  const text = await readFile(new URL('../../blueprints/bootstrap.yaml', import.meta.url), 'utf8')
  const plan = compile(await parse(text), engine.registry)
  return transaction(
    db,
    async (tx) => {
      await execute(tx, { text: 'SELECT pg_advisory_xact_lock($1)', values: [locks.bootstrap] })
      const done = await tx.installation.count({ where: { bootstrappedAt: { not: null } } })
      if (done > 0) {
        const changes = await giveNewKinds(tx, engine.registry)
        const record = async (engineTx: EngineTx) => audit(engineTx, { actor: system, action: 'bootstrap', changes })
        if (changes.length > 0) await withEngine(tx, record)
        return false
      }
      const id = uuid7()
      const check = sealedCheck(engine.keyring, id)
      await tx.installation.create({ data: { id, bootstrappedAt: new Date(), sealedCheck: check } })
      await withEngine(tx, async (engineTx) => {
        const conditions = { ...unconditional, createOnly: true }
        const { audited } = await apply(engineTx, engine, plan, system, conditions)
        audit(engineTx, { actor: system, action: 'bootstrap', changes: audited })
      })
      await giveNewKinds(tx, engine.registry)
      await storeToken(tx, engine, firstToken())
      return true
    },
    patient,
  )
}

async function storeToken(tx: Tx, { keyring }: Engine, secret: string): Promise<void> {
  const admin = await tx.user.findUnique({ where: { username: adminName }, select: { pk: true } })
  if (admin === null) throw new Error(`blueprints/bootstrap.yaml brings no user ${adminName}`)
  await tx.token.create({
    data: {
      pk: uuid7(),
      identifier: 'bootstrap',
      userPk: admin.pk,
      description: 'Made at the first start',
      expiring: false,
      keyHash: new Uint8Array(sha256(secret)),
      // An operator may have chosen it.
      checksumKey: isKeyed(secret, keyring) ? keyring.ids[0] : null,
    },
  })
}
