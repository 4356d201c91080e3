import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { retrying } from '../db/backoff.ts'
import { type Db, patient, type Tx, transaction } from '../db/client.ts'
import { withEngine } from '../db/engine-tx.ts'
import { isBusy, isCollision, isLockTimeout } from '../db/errors.ts'
import { locks } from '../db/locks.ts'
import { execute, query } from '../db/raw.ts'
import { requireSecretKey, sealedCheck } from '../db/sealed-check.ts'
import { parse } from '../document/yaml.ts'
import { sha256, uuid7 } from '../ids.ts'
import type { Registry } from '../models/registry.ts'
import { type Permission, system } from '../permissions.ts'
import { compile, type Plan } from '../plan/compile.ts'
import { type Engine, unconditional } from '../plan/engine.ts'
import { StartError } from '../start-error.ts'
import { isKeyed } from '../token-secret.ts'
import { apply } from './apply.ts'
import { type AuditedChange, audit, auditStatement } from './audit.ts'

/** The first start of an installation: the engine applies the bootstrap blueprint. */

const adminName = 'admin'

/** Each of them waits for a lock for three seconds at most: for two minutes together. */
const tries = {
  max: 35,
  stepMs: 500,
  canRetry: (error: unknown) => isBusy(error) || isCollision(error),
  pause: () => delay(500),
} as const

/**
 * Creates the rows of the blueprint once per installation: those that are deleted later, the admin too, are never created again.
 * Each later start gives the role of deployers the provider kinds that are new. Of processes that start at once, one creates them,
 * and the others wait for it, for longer than a statement may wait for a lock.
 *
 * @param firstToken returns the admin's token; called at the first start only, before anything is committed
 * @returns whether this is the first start
 * @throws {StartError} under another SECRET_KEY, and when a lock was not given for two minutes
 */
export async function bootstrap(db: Db, engine: Engine, firstToken: () => string): Promise<boolean> {
  const text = await readFile(new URL('../../blueprints/bootstrap.yaml', import.meta.url), 'utf8')
  const plan = compile(await parse(text), engine.registry)
  try {
    return await retrying(() => transaction(db, (tx) => createOnce(tx, engine, plan, firstToken), patient), tries)
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    throw new StartError(
      'Another process has kept a lock that the start needs for two minutes: wait for it, or stop it.',
      { cause: error },
    )
  }
}

async function createOnce(tx: Tx, engine: Engine, plan: Plan, firstToken: () => string): Promise<boolean> {
  await execute(tx, { text: 'SELECT pg_advisory_xact_lock($1)', values: [locks.bootstrap] })
  await requireSecretKey(tx, engine.keyring)
  const done = await tx.installation.count({ where: { bootstrappedAt: { not: null } } })
  if (done > 0) {
    const changes = await giveNewKinds(tx, engine.registry)
    if (changes.length > 0) await execute(tx, auditStatement({ actor: system, action: 'bootstrap', changes }))
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

/** The role of deployers in `blueprints/bootstrap.yaml`. */
const deployerRole = '6f7e0000-0000-4000-8000-000000000401'

const changedRole = z.object({ name: z.string(), from: z.array(z.string()), to: z.array(z.string()) })

/**
 * Gives the shipped role of deployers the permissions for the provider kinds that are new to this installation, each kind once. A
 * role from which an operator took a permission for another kind gets none: it was made for fewer kinds.
 *
 * @returns the changes
 */
export async function giveNewKinds(tx: Tx, { kinds }: Registry): Promise<readonly AuditedChange[]> {
  const { deployerKinds: given } = await tx.installation.findFirstOrThrow({ select: { deployerKinds: true } })
  const added = [...kinds.keys()].filter((kind) => !given.includes(kind))
  if (added.length === 0) return []
  await tx.installation.updateMany({ data: { deployerKinds: { push: added } } })
  const permissionsFor = (names: readonly string[]): Permission[] =>
    names
      .flatMap((kind) => kinds.get(kind)?.resource ?? [])
      .flatMap((resource) => [`view_${resource}`, `add_${resource}`, `change_${resource}`] as const)
  // This is one statement: an operator may change the role at this moment.
  const changed = await query(tx, changedRole, {
    text: `UPDATE roles SET permissions = ARRAY(SELECT DISTINCT unnest(r.permissions || $2::text[]) ORDER BY 1)
      FROM roles r WHERE roles.pk = $1::uuid AND r.pk = roles.pk AND r.permissions @> $3::text[]
      RETURNING roles.name, r.permissions AS "from", roles.permissions AS "to"`,
    values: [deployerRole, permissionsFor(added), permissionsFor(given)],
  })
  return changed.map(({ name, from, to }) => ({
    model: 'service_rbac.role',
    key: deployerRole,
    action: 'update',
    fields: ['permissions'],
    object: { name, was: null, owner: null, change: 0, fields: { permissions: { from, to } } },
  }))
}
