import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { query } from '../db/raw.ts'
import type { Registry } from '../models/registry.ts'
import type { Permission } from '../permissions.ts'
import type { AuditedChange } from './audit.ts'

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
    names.flatMap((kind) => {
      const resource = kinds.get(kind)?.resource
      return resource === undefined
        ? []
        : [`view_${resource}` as const, `add_${resource}` as const, `change_${resource}` as const]
    })
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
