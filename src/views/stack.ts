import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { withExample } from '../example.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows, ownersFor, permissionsOf, seesAllRuns } from '../permissions.ts'
import { asKey, labelColumn, quoted } from '../plan/statements.ts'

/** Stacks, and the objects that they manage (docs/adr/0138-a-stack-is-what-a-repository-manages.md). */

const summary = {
  name: withExample(z.string(), 'corp/identity', 'Its name.'),
  created_at: z.iso.datetime().meta({ description: 'When a document named it first.' }),
  run: z.guid().nullable().meta({ description: 'The last run that changed something of it.' }),
  run_before: z
    .guid()
    .nullable()
    .meta({ description: 'The run before that with another document: a roll back applies it.' }),
  owners: withExample(z.array(z.string()), ['team-a'], 'The owners of its objects.'),
  size: z.int().meta({ description: 'How many objects it has.' }),
  left_over: z.int().meta({ description: 'How many of them its files have no more.' }),
}

export const stackSummary = z.object(summary).meta({ id: 'StackSummary' })

type StackSummary = z.output<typeof stackSummary>

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

type Stack = z.output<typeof stackDetail>

const memberRow = z.object({
  model: z.string(),
  key: z.string(),
  name: z.string(),
  owner: z.string().nullable(),
  fields: z.array(z.string()),
  retain: z.boolean(),
  left_at: z.date().nullable(),
})

/**
 * The members that are there and that the caller may know, with their names and owners, in SQL: one part for each table. The first
 * parameter has the names of stacks, the second one what the caller may know.
 */
function membersText({ models }: Registry): string {
  const parts = [...Map.groupBy(models, ({ table }) => table)].map(([table, of]) => {
    const [first] = of
    if (first === undefined) throw new Error(`${table} has no model`)
    const names = of.map(({ name }) => `'${name}'`).join(', ')
    const owner = of.some(({ isLabelled }) => isLabelled === true) ? 't.owner' : 'NULL'
    const key = `CASE WHEN m.model IN (${names}) THEN ${asKey(first.key, 'm.key')} END`
    return `SELECT m.*, t.${quoted(labelColumn(first))}::text AS name, ${owner}::text AS owner
      FROM stack_members m JOIN ${quoted(table)} t ON t.pk = ${key} WHERE m.stack = ANY($1) AND m.model IN (${names})`
  })
  return `SELECT m.* FROM (${parts.join(' UNION ALL ')}) m JOIN jsonb_to_recordset($2::jsonb) v(model text, owners text[])
    ON v.model = m.model AND (v.owners IS NULL OR m.owner = ANY (v.owners))`
}

const known = new WeakMap<Registry, string>()

/** The owners of whose rows of a model the caller may know the names; null: all. The rule is that of `mayKnow`. */
const ownersKnown = (actor: Actor, { resource, isLabelled }: Model): string[] | null => {
  const all = permissionsOf(resource)
  const owners = all.flatMap((permission) => ownersFor(actor, permission))
  const isFree = all.some((permission) => allows(actor, permission)) || (isLabelled !== true && owners.length > 0)
  return isFree ? null : owners
}

function valuesFor({ models }: Registry, actor: Actor, names: readonly string[]): unknown[] {
  const seen = models.map((model) => ({ model: model.name, owners: ownersKnown(actor, model) }))
  return [names, JSON.stringify(seen.filter(({ owners }) => owners === null || owners.length > 0))]
}

const countRow = z.object({ stack: z.string(), size: z.int(), left_over: z.int(), owners: z.array(z.string()) })

/** Reads the stacks of which the caller may know an object, those without one, or one of them by name. */
export async function readStacks(db: Db, registry: Registry, actor: Actor, name?: string): Promise<StackSummary[]> {
  const stacks = await db.stack.findMany({
    where: { ...(name !== undefined && { name }) },
    orderBy: { name: 'asc' },
    take: mostStacks,
  })
  const members = known.getOrInsertComputed(registry, membersText)
  const counts = await query(db, countRow, {
    text: `SELECT stack, count(*)::integer AS size, count(left_at)::integer AS left_over,
        coalesce(array_agg(DISTINCT owner ORDER BY owner) FILTER (WHERE owner IS NOT NULL), '{}') AS owners
      FROM (${members}) m GROUP BY stack`,
    values: valuesFor(
      registry,
      actor,
      stacks.map((each) => each.name),
    ),
  })
  const byStack = new Map(counts.map(({ stack, ...count }) => [stack, count]))
  return stacks.flatMap(({ createdAt, runBefore, ...stack }) => {
    const count = byStack.get(stack.name)
    if (count === undefined && !seesAllRuns(actor)) return []
    const none = { size: 0, left_over: 0, owners: [] }
    return [{ ...stack, created_at: createdAt.toISOString(), run_before: runBefore, ...(count ?? none) }]
  })
}

/** Reads a stack with its objects, as far as the caller may know them; undefined when there is none that the caller may know. */
export async function readStack(db: Db, registry: Registry, actor: Actor, name: string): Promise<Stack | undefined> {
  const [stack] = await readStacks(db, registry, actor, name)
  if (stack === undefined) return undefined
  const text = `SELECT model, key, name, owner, fields, retain, left_at
    FROM (${known.getOrInsertComputed(registry, membersText)}) m ORDER BY model, name`
  const rows = await query(db, memberRow, { text, values: valuesFor(registry, actor, [name]) })
  return { ...stack, members: rows.map(({ left_at, ...row }) => ({ ...row, left_at: left_at?.toISOString() ?? null })) }
}

/** The most stacks of a list. */
export const mostStacks = 1_000
