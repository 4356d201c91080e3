import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { withExample } from '../example.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { mayKnow } from '../plan/effect.ts'
import { asKey, labelColumn, quoted } from '../plan/statements.ts'

/** Stacks, and the objects that they manage (docs/adr/0138-a-stack-is-what-a-repository-manages.md). */

const summary = {
  name: withExample(z.string(), 'corp/identity', 'Its name.'),
  created_at: z.iso.datetime().meta({ description: 'When a document named it first.' }),
  run: z.guid().nullable().meta({ description: 'The last run that changed something of it.' }),
  run_before: z.guid().nullable().meta({ description: 'The run before that: a roll back applies it.' }),
  owners: withExample(z.array(z.string()), ['team-a'], 'The owners of its objects.'),
  size: z.int().meta({ description: 'How many objects it has.' }),
  left_over: z.int().meta({ description: 'How many of them its files have no more.' }),
}

export const stackSummary = z.object(summary).meta({ id: 'StackSummary' })

const member = z
  .object({
    model: withExample(z.string(), 'service_core.application', 'The model of the object.'),
    key: z.string().meta({ description: 'Its key.' }),
    name: withExample(z.string(), 'grafana', 'Its name, or its slug.'),
    owner: withExample(z.string().nullable(), 'team-a', 'The label under which it is managed.'),
    fields: withExample(z.array(z.string()), ['name', 'slug'], 'The fields that the files name.'),
    retain: z.boolean().meta({ description: 'Whether it stays without the stack, once it leaves the files.' }),
    left_at: z.iso.datetime().nullable().meta({ description: 'Since when no file has it.' }),
  })
  .meta({ id: 'StackMember' })

export const stackDetail = z
  .object({
    ...summary,
    members: z.array(member).meta({ description: 'Its objects, as far as the caller may know them.' }),
  })
  .meta({ id: 'Stack' })

const memberRow = z.object({
  stack: z.string(),
  model: z.string(),
  key: z.string(),
  name: z.string(),
  owner: z.string().nullable(),
  fields: z.array(z.string()),
  retain: z.boolean(),
  left_at: z.date().nullable(),
})

/** The members that are there, with their names and owners, in SQL: one part for each table. */
function membersText({ models }: Registry): string {
  const parts = [...Map.groupBy(models, ({ table }) => table)].map(([table, of]) => {
    const [first] = of
    if (first === undefined) throw new Error(`${table} has no model`)
    const names = of.map(({ name }) => `'${name}'`).join(', ')
    const owner = of.some(({ isLabelled }) => isLabelled === true) ? 't.owner' : 'NULL'
    const key = `CASE WHEN m.model IN (${names}) THEN ${asKey(first.key, 'm.key')} END`
    return `SELECT m.stack, m.model, m.key, t.${quoted(labelColumn(first))}::text AS name, ${owner}::text AS owner, m.fields, m.retain, m.left_at
      FROM stack_members m JOIN ${quoted(table)} t ON t.pk = ${key} WHERE m.stack = ANY($1) AND m.model IN (${names})`
  })
  return `${parts.join(' UNION ALL ')} ORDER BY model, name`
}

const known = new WeakMap<Registry, string>()

/** Reads stacks by name. @returns those of which the caller may know an object, and those of a caller whose rights are not bound */
export async function readStacks(db: Db, registry: Registry, actor: Actor, name?: string) {
  const stacks = await db.stack.findMany({
    ...(name !== undefined && { where: { name } }),
    orderBy: { name: 'asc' },
    take: mostStacks,
  })
  const text = known.getOrInsertComputed(registry, membersText)
  const rows = await query(db, memberRow, { text, values: [stacks.map((each) => each.name)] })
  const seen = rows.filter(({ model, owner }) => {
    const of = registry.byName(model)
    return of !== undefined && mayKnow(actor, of, owner)
  })
  const byStack = Map.groupBy(seen, ({ stack }) => stack)
  return stacks.flatMap((stack) => {
    const of = byStack.get(stack.name) ?? []
    const isEmpty = !rows.some((row) => row.stack === stack.name)
    if (of.length === 0 && !isEmpty) return []
    const owners = new Set(of.flatMap(({ owner }) => owner ?? []))
    return {
      name: stack.name,
      created_at: stack.createdAt.toISOString(),
      run: stack.run,
      run_before: stack.runBefore,
      owners: [...owners].sort(),
      size: of.length,
      left_over: of.filter(({ left_at }) => left_at !== null).length,
      members: of.map(({ stack: _, left_at, ...row }) => ({ ...row, left_at: left_at?.toISOString() ?? null })),
    }
  })
}

/** The most stacks of a list. */
export const mostStacks = 1_000
