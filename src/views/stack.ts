import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { query, Values } from '../db/raw.ts'
import { withExample } from '../example.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, ownersFor, permissionsOf } from '../permissions.ts'
import { pipelineForm } from '../pipeline.ts'
import { mayKnow } from '../plan/effect.ts'
import { asKey, labelColumn, quoted } from '../plan/statements.ts'
import { pipelineShown } from '../runs/options.ts'
import { inOrder, type Reading, type View } from './view.ts'

/** Stacks, and the objects that they manage (docs/adr/0138-a-stack-is-what-a-repository-manages.md). */

const summary = {
  name: withExample(z.string(), 'corp/identity', 'Its name.'),
  created_at: z.iso.datetime().meta({ description: 'When a document named it first.' }),
  run: z.guid().nullable().meta({ description: 'The last run that changed something of it.' }),
  run_before: z
    .guid()
    .nullable()
    .meta({ description: 'The run before that with another document: a roll back applies it.' }),
  pipeline: pipelineForm.nullable().meta({ description: 'The job that submitted `run`, if the caller may see that.' }),
  owners: withExample(z.array(z.string()), ['team-a'], 'The owners of its objects.'),
  size: z.int().meta({ description: 'How many objects it has.' }),
  left_over: z.int().meta({ description: 'How many of them its files have no more.' }),
}

const stackSummary = z.object(summary).meta({ id: 'StackSummary' })

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

const stackDetail = z
  .object({
    ...summary,
    members: z.array(member).meta({ description: 'Its objects, as far as the caller may know them.' }),
  })
  .meta({ id: 'Stack' })

type Models = Pick<Registry, 'models'>

/**
 * The members that stand and that the caller may know, with their names and owners, in SQL: a part for each model.
 *
 * @param of those of which stacks, as a condition on the member `m`
 */
export const membersSeen = ({ models }: Models, actor: Actor, of: string, bind: Values['bind']): string =>
  models
    .map((model) => {
      const owner = model.isLabelled === true ? 't.owner' : 'NULL::text'
      const known = `${bind(ownersKnown(actor, model))}::text[]`
      return `SELECT m.*, t.${quoted(labelColumn(model))}::text AS name, ${owner} AS owner
        FROM stack_members m JOIN ${quoted(model.table)} t ON t.pk = ${asKey(model.key, 'm.key')}
        WHERE ${of} AND m.model = '${model.name}' AND (${known} IS NULL OR ${owner} = ANY (${known}))`
    })
    .join(' UNION ALL ')

/** The owners of whose rows of a model the caller may know the names; null: all. */
const ownersKnown = (actor: Actor, model: Model): string[] | null =>
  mayKnow(actor, model, null) ? null : permissionsOf(model.resource).flatMap((each) => ownersFor(actor, each))

const stackRow = stackSummary
  .omit({ pipeline: true })
  .extend({ created_at: z.date(), options: z.unknown(), submitterPk: z.int().nullable() })

/** Reads stacks by their names. Counts and owners are of the members that the caller may know. */
async function readStacks(tx: Tx, registry: Registry, actor: Actor, names: readonly string[]): Promise<StackSummary[]> {
  const { list: values, bind } = new Values()
  const asked = bind(names)
  const rows = await query(tx, stackRow, {
    text: `SELECT s.name, s.created_at, s.run, s.run_before, count(m.key)::integer AS size, count(m.left_at)::integer AS left_over,
        r.options, r.submitter_pk AS "submitterPk",
        coalesce(array_agg(DISTINCT m.owner ORDER BY m.owner) FILTER (WHERE m.owner IS NOT NULL), '{}') AS owners
      FROM stacks s LEFT JOIN runs r ON r.id = s.run
        LEFT JOIN (${membersSeen(registry, actor, `m.stack = ANY (${asked})`, bind)}) m ON m.stack = s.name
      WHERE s.name = ANY (${asked}) GROUP BY s.name, r.id`,
    values,
  })
  return inOrder(names, rows, ({ name }) => name).map(({ options, submitterPk, ...row }) => ({
    ...row,
    pipeline: pipelineShown({ options, submitterPk }, actor),
    created_at: row.created_at.toISOString(),
  }))
}

const memberRow = member.extend({ left_at: z.date().nullable() })

/**
 * Reads the members of a stack that the caller may know.
 *
 * @param models only those of these
 * @param called only those with this name or key; null: all
 */
export async function readMembers(
  tx: Tx,
  models: Models,
  actor: Actor,
  stack: string,
  called: string | null = null,
): Promise<z.output<typeof member>[]> {
  const { list: values, bind } = new Values()
  const text = `${bind(called)}::text`
  const rows = await query(tx, memberRow, {
    text: `SELECT model, key, name, owner, fields, retain, left_at
      FROM (${membersSeen(models, actor, `m.stack = ${bind(stack)}`, bind)}) m
      WHERE ${text} IS NULL OR name = ${text} OR key = ${text} ORDER BY model, name, key`,
    values,
  })
  return rows.map((row) => ({ ...row, left_at: row.left_at?.toISOString() ?? null }))
}

/** Stacks as their list shows them. @param isFull with their members */
export const stackView = (registry: Registry, isFull = false) =>
  ({
    model: 'Stack',
    schema: isFull ? stackDetail : stackSummary,
    async *read(tx: Tx, names: readonly string[], { actor }: Reading) {
      const stacks = await readStacks(tx, registry, actor, names)
      if (!isFull) return yield stacks
      for (const each of stacks) yield [{ ...each, members: await readMembers(tx, registry, actor, each.name) }]
    },
  }) satisfies View<'Stack'>
