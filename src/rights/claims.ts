import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows, type Permission } from '../permissions.ts'
import type { Finding } from '../plan/inspect.ts'
import { quoted } from '../plan/statements.ts'

const found = z.object({ row: z.record(z.string(), z.string()) })

/**
 * A row that is there and that an entry takes for its own row, such as a provider for an application, is changed by it.
 *
 * @returns the permission to change such a row that the actor lacks, if any. Reads only for an actor who lacks one
 */
export async function lackingForClaims(
  reader: EngineReader,
  registry: Registry,
  actor: Actor,
  { step: { model }, claims }: Finding,
): Promise<Permission | null> {
  for (const [name, keys] of claims) {
    const target = registry.targets.get(model.fields.get(name)?.reference?.target ?? '')
    if (target === undefined) throw new Error(`${model.name}: ${name} is claimed, but no reference`)
    const models = registry.models.filter(({ table }) => table === target.table)
    const lacked = models.filter(({ resource }) => !allows(actor, `change_${resource}`))
    if (lacked.length === 0) continue
    const columns = [...new Set(models.flatMap(({ discriminator }) => Object.keys(discriminator)))].map(quoted)
    const rows = await reader.query(found, {
      text: `SELECT DISTINCT to_jsonb(d) AS row FROM (SELECT ${columns.join(', ')} FROM ${quoted(target.table)}
        WHERE pk = ANY($1::${target.key}[])) d`,
      values: [keys],
    })
    const missing = lacked.find(({ discriminator }) =>
      rows.some(({ row }) => Object.entries(discriminator).every(([column, value]) => row[column] === value)),
    )
    if (missing !== undefined) return `change_${missing.resource}`
  }
  return null
}
