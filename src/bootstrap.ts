import { readFile } from 'node:fs/promises'
import { apply } from './blueprint/apply.ts'
import { compile } from './blueprint/compile.ts'
import type { Engine } from './blueprint/inspect.ts'
import { parse } from './blueprint/yaml.ts'
import { type Db, type Tx, transaction } from './db/client.ts'
import { sql } from './db/sql.ts'
import { sha256, uuid7 } from './ids.ts'
import { system } from './permissions.ts'
import { newSecret } from './token-secret.ts'

/** The first start of an installation: what the product ships, applied through the engine that serves everybody. */

/** Any number; it names the lock that lets one process at a time bootstrap. */
const lockNumber = 7_201_455_301
const adminName = 'admin'

/**
 * Happens once: what is deleted afterwards stays deleted, and an admin never comes back.
 *
 * @param bootstrapToken the admin's token, when the operator chose one
 * @returns the token that was made, at the first start without a chosen one; else null
 */
export async function bootstrap(db: Db, engine: Engine, bootstrapToken: string | null): Promise<string | null> {
  const text = await readFile(new URL('../blueprints/bootstrap.yaml', import.meta.url), 'utf8')
  const plan = compile(parse(text), engine.registry)
  return transaction(db, async (tx) => {
    await tx.query(sql`SELECT pg_advisory_xact_lock(${lockNumber})`)
    const done = await tx.query(sql`SELECT 1 FROM installation WHERE bootstrapped_at IS NOT NULL`)
    if (done.length > 0) return null
    await tx.query(sql`INSERT INTO installation (id, bootstrapped_at) VALUES (${uuid7()}, now())`)
    const { changes } = await apply(tx, engine, plan, system, { createOnly: true, expectedKeys: {} })
    const secret = bootstrapToken ?? newSecret('api')
    await keepToken(tx, secret)
    await tx.query(sql`
      INSERT INTO audit_rows (actor_name, action, changes) VALUES (${system.username}, 'bootstrap', ${JSON.stringify(changes)}::jsonb)`)
    return bootstrapToken === null ? secret : null
  })
}

async function keepToken(tx: Tx, secret: string): Promise<void> {
  const made = await tx.query(sql`
    INSERT INTO tokens (pk, identifier, intent, user_pk, description, expiring, key_hash)
    SELECT ${uuid7()}, 'bootstrap', 'api', pk, 'Made at the first start', false, ${sha256(secret)} FROM users WHERE username = ${adminName}
    RETURNING pk`)
  if (made.length !== 1) throw new Error(`blueprints/bootstrap.yaml brings no user ${adminName}`)
}
