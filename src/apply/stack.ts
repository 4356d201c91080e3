import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { documentLimits } from '../document/document.ts'
import { ErrorList } from '../errors.ts'
import type { Field } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, stacksOf } from '../permissions.ts'
import { type LabelledRow, labelledRow, placeOf } from '../plan/claims.ts'
import { dependenciesFirst } from '../plan/dependencies-first.ts'
import { allowsRow, mayKnow } from '../plan/effect.ts'
import { type Conditions, isReviewed } from '../plan/engine.ts'
import type { Loader } from '../plan/load.ts'
import { byKey, keyIn, type Look } from '../plan/look.ts'
import { referringTo } from '../plan/referrers.ts'
import { isSame } from '../plan/same-value.ts'
import { linksOf, type Row } from '../plan/statements.ts'
import { storedKeys } from '../plan/storage.ts'
import type { Finding, Objection } from './finding.ts'
import { limited } from './unclaimed.ts'
import { maxListed, nameOf, rowName } from './words.ts'
import type { Writes } from './writes.ts'

/**
 * A stack: the objects that one repository manages, by name. Each apply of the stack records what its document names. What no
 * document of it names any more is left over (docs/adr/0138-a-stack-is-what-a-repository-manages.md).
 */

const memberRow = z.object({
  stack: z.string(),
  model: z.string(),
  key: z.string(),
  fields: z.array(z.string()),
  retain: z.boolean(),
  left: z.boolean(),
})

const columns = 'm.stack, m.model, m.key, m.fields, m.retain, m.left_at IS NOT NULL AS left'

type Member = z.output<typeof memberRow>

/** A row that left the files. @property usedBy rows that claim it, and that stay */
export type LeftRow = LabelledRow & { readonly under: string | null; readonly usedBy: readonly LabelledRow[] }

/** A row that entries name, with the last of them, and what is recorded of it. */
type Named = { readonly finding: Finding; readonly member: Member }

export type Stack = {
  readonly name: string
  /** The rows that entries name and that stand behind the document, by model and key. */
  readonly named: ReadonlyMap<string, Named>
  /** What its documents so far named, by model and key. */
  readonly members: ReadonlyMap<string, Member>
  /** The rows that no entry names any more, those that refer to others of them first. */
  readonly left: readonly LeftRow[]
  /** The same, of entries with `retain`: they stay without the stack. */
  readonly retained: readonly LabelledRow[]
  /** The named rows that other stacks have. */
  readonly taken: readonly { readonly finding: Finding; readonly from: string }[]
}

/** The stack of the document, once all entries are judged. */
export type OfStack = { readonly cause: 'stack'; readonly stack: Stack; readonly objections: readonly Objection[] }

const keyOf = ({ row, identity }: Finding) => row?.pk ?? identity?.pk
const memberKey = (model: string, key: unknown): string => `${model} ${key}`

const placeIn = (finding: Finding): string => memberKey(finding.step.model.name, keyOf(finding))

function namedBy(stack: string, findings: readonly Finding[]): ReadonlyMap<string, Named> {
  const named = new Map<string, Named>()
  for (const finding of findings) {
    const { cause, action, isForeign, step } = finding
    const key = keyOf(finding)
    if (cause !== 'entry' || isForeign || action === 'delete' || key === undefined) continue
    const place = placeIn(finding)
    const { fields: before = [], retain = false } = named.get(place)?.member ?? {}
    // An entry that leaves its row alone manages no field of it.
    const sent = action === 'leave' ? [] : [...step.identifiers.keys(), ...step.attrs.keys()]
    const fields = [...new Set([...before, ...sent.filter((name) => step.reset?.has(name) !== true)])].sort()
    const isRetained = retain || step.retain === true
    const member = { stack, model: step.model.name, key: String(key), fields, retain: isRetained, left: false }
    named.set(place, { finding, member })
  }
  return named
}

/** Reads the members of a stack, and of other stacks those that the document names. */
export async function readStack(loader: Loader, name: string, findings: readonly Finding[]): Promise<Stack> {
  const { world, reader } = loader
  const { registry } = world
  const named = namedBy(name, findings)
  // An entry also names what it deletes.
  const there = new Map(
    findings.flatMap((each) =>
      each.cause === 'entry' && !each.isForeign && each.row !== undefined ? [[placeIn(each), each] as const] : [],
    ),
  )
  const places = [...there.values()]
  const rows = await reader.query(memberRow, {
    text: `SELECT ${columns} FROM stack_members m WHERE m.stack = $1
      UNION ALL SELECT ${columns} FROM unnest($2::text[], $3::text[]) n(model, key) JOIN stack_members m USING (model, key)
      WHERE m.stack <> $1 ORDER BY model, key`,
    values: [name, places.map(({ step }) => step.model.name), places.map((each) => String(keyOf(each)))],
  })
  const members = new Map(
    rows.filter(({ stack }) => stack === name).map((each) => [memberKey(each.model, each.key), each]),
  )
  const taken = rows.flatMap(({ stack, model, key }) => {
    const finding = there.get(memberKey(model, key))
    return stack === name || finding === undefined ? [] : [{ finding, from: stack }]
  })
  const gone = [...members].flatMap(([place, member]) => {
    const model = registry.byName(member.model)
    return named.has(place) || model === undefined ? [] : [{ member, model, look: byKey(model, member.key) }]
  })
  await loader.load({ looks: gone.map(({ look }) => look), isAgain: true })
  const standing = gone.flatMap(({ member, model }) => {
    const row = world.row(model.table, keyIn(member.key))
    return row === undefined ? [] : [{ row, member, labelled: labelledRow(model, row) }]
  })
  const left = new Map(
    standing.filter(({ member }) => !member.retain).map((each) => [placeOf(each.labelled), each] as const),
  )
  const claims = new Map([...left].map(([place, { labelled }]) => [place, usingLooks(registry, labelled)]))
  await loader.load({ looks: [...claims.values()].flat(), isAgain: true })
  const ordered = dependenciesFirst(left.values(), ({ row, labelled: { model } }) =>
    [...model.fields.values()].flatMap((field) =>
      field.reference === undefined
        ? []
        : storedKeys(field, row).flatMap((key) => left.get(`${world.tableOf(field.reference)} ${key}`) ?? []),
    ),
  ).reverse()
  const usedBy = (place: string): LabelledRow[] =>
    (claims.get(place) ?? []).flatMap((look) => {
      const using: Row[] = world.find(look)
      const all = using.flatMap((row) => {
        const model = world.modelOf(look.model.table, row)
        return model === undefined ? [] : [labelledRow(model, row)]
      })
      return all.filter((row) => !left.has(placeOf(row)))
    })
  return {
    name,
    named,
    members,
    taken,
    left: ordered.map(({ labelled }) => ({ ...labelled, under: labelled.owner, usedBy: usedBy(placeOf(labelled)) })),
    retained: standing.filter(({ member }) => member.retain).map(({ labelled }) => labelled),
  }
}

/**
 * The questions for rows that use a row. The judge refuses those that it finds by references that hold. Members of a group are on
 * both sides of their link, and what belongs to a user goes with the user.
 */
const usingLooks = (registry: Registry, { model: { table }, pk }: LabelledRow): Look[] =>
  referringTo(registry, table).flatMap(({ model, field }) => {
    const { reference, storage, name } = field
    const isOther =
      reference.holds === true || storage.in === 'settings' || name === model.owner || isOfTwoSides(registry, field)
    return isOther ? [] : [{ model, field, columns: [], values: [String(pk)], most: maxListed + 1 }]
  })

const isOfTwoSides = ({ models }: Registry, { storage }: Field): boolean =>
  storage.in === 'link' &&
  models.filter((model) => linksOf(model).some(([, link]) => link.table === storage.table)).length > 1

/** Whether the rows that are left over are deleted: a reviewed plan lists them, and a request acknowledges their number. */
export const deletesLeft = ({ left }: Stack, conditions: Conditions): boolean =>
  left.length > 0 && (isReviewed(conditions) || conditions.allow.deletes === left.length)

/** Another number than the acknowledged one. Where nothing is left over, a pipeline may send its number again. */
export const otherNumber = (rows: readonly LeftRow[], { mode, allow }: Conditions, actor: Actor): Objection[] =>
  mode === 'apply' && allow.deletes !== null && rows.length > 0 && allow.deletes !== rows.length
    ? [{ is: 'left', rows, acknowledged: allow.deletes, actor }]
    : []

/** The row that the document leaves over, or lets go, without the right to delete it. */
function withoutRight({ left, retained, name }: Stack, actor: Actor): Objection[] {
  const isAllowed = ({ model, owner }: LabelledRow) => allowsRow(actor, `delete_${model.resource}`, model, owner)
  if ([...left, ...retained].every(isAllowed)) return []
  const text = `stack ${JSON.stringify(name)} has objects that the submitter may not delete, and the document does not name them`
  return [{ is: 'stated', reason: 'permission_denied', text }]
}

/** A token that is bound to stacks takes nothing over from others. */
function outOfBonds({ taken }: Stack, actor: Actor): Objection[] {
  const stacks = stacksOf(actor)
  if (stacks === null || taken.every(({ from }) => stacks.has(from))) return []
  return [{ is: 'unstacked', actor, stacks: [...stacks].sort() }]
}

/** What stands against the document as a whole. */
export function objectionsOf(stack: Stack, conditions: Conditions, actor: Actor): Objection[] {
  const { left, taken, name } = stack
  const { deletes, takeover } = conditions.allow
  const isDeleted = deletesLeft(stack, conditions)
  return [
    // The judge denies each deletion.
    ...(isDeleted ? [] : withoutRight(stack, actor)),
    ...outOfBonds(stack, actor),
    ...otherNumber(left, conditions, actor),
    ...(isDeleted && left.length > documentLimits.entries
      ? [{ is: 'left', rows: left, acknowledged: deletes, actor } as const]
      : []),
    ...(takeover || isReviewed(conditions)
      ? []
      : taken.map(({ finding, from }) => ({ is: 'stacked', effect: finding, from, stack: name }) as const)),
  ]
}

/** The error of a row that is left over while a row that stays refers to it. */
export function usedElsewhere({ usedBy, ...row }: LeftRow, actor: Actor): Objection[] {
  if (usedBy.length === 0) return []
  const known = knownTo(actor, usedBy).slice(0, maxListed)
  const more = usedBy.length - known.length
  const by = [...known.map(nameOf), ...(more > 0 ? [`${more} more`] : [])].join(', ')
  const errors = new ErrorList()
  errors.add(
    [],
    'in_use',
    `${nameOf(row)} left the files, and ${by} refers to it: change or delete that first, or put the entry back with retain.`,
  )
  return [{ is: 'invalid', errors }]
}

/** The lines of the log about a stack, beside those of its entries and deletions. */
export function stackLines(stack: Stack, actor: Actor, conditions: Conditions): string[] {
  const { name, retained, taken } = stack
  const [leaves, stays] = conditions.mode === 'plan' ? ['would leave', 'would stay'] : ['left', 'stays']
  const text = `stack ${JSON.stringify(name)}`
  return limited([
    ...taken.map(({ finding, from }) => `${rowName(finding)} ${leaves} stack ${JSON.stringify(from)}`),
    ...noLongerManaged(stack),
    ...leftLines(stack, actor, conditions),
    ...knownTo(actor, retained).map((row) => `${nameOf(row)} ${stays} without ${text}: its entry had retain`),
  ])
}

const knownTo = (actor: Actor, rows: readonly LabelledRow[]) =>
  rows.filter(({ model, owner }) => mayKnow(actor, model, owner))

function leftLines(stack: Stack, actor: Actor, conditions: Conditions): string[] {
  const { name, left } = stack
  const { length } = left
  const unnamed = `no entry of stack ${JSON.stringify(name)} names`
  const remedy = `Gatewright-Allow: deletes=${length}`
  if (length === 0) return []
  if (!deletesLeft(stack, conditions))
    return [
      ...knownTo(actor, left).map((row) => `${nameOf(row)} is left over: ${unnamed} it any more`),
      `${length} left over: an apply of a reviewed plan deletes what is left over, and so does ${remedy}`,
    ]
  if (conditions.mode !== 'plan') return []
  return [`${length} left over, which ${unnamed} any more: an apply of this plan deletes them, and so does ${remedy}`]
}

/** A line for each row with fields that the document before named, and that this one does not name. */
function noLongerManaged({ members, named }: Stack): string[] {
  return [...named].flatMap(([place, { finding, member }]) => {
    const { step, values, isHidden } = finding
    const gone = (members.get(place)?.fields ?? []).filter((field) => !member.fields.includes(field))
    const texts = gone.flatMap((name) => {
      const field = step.model.fields.get(name)
      const value = values[name] ?? null
      if (field === undefined || isHidden || isSame(field, field.initial ?? null, value)) return []
      const isPlain = field.reference === undefined && !field.secret
      return [`${name} is no longer managed, keeps ${isPlain ? JSON.stringify(value) : 'its value'}`]
    })
    return texts.length === 0 ? [] : [`${rowName(finding)}: ${texts.join(', ')}`]
  })
}

/**
 * Records the members of the stack behind the document, as far as they differ.
 *
 * @param isDeleted whether the rows that are left over were deleted
 * @returns whether anything differs
 */
export function writeMembers(writes: Writes, stack: Stack, isDeleted: boolean): boolean {
  const { name, named, members, left } = stack
  const changed = [...named].flatMap(([place, { member }]) =>
    isDeepStrictEqual(member, members.get(place)) ? [] : [member],
  )
  const kept = isDeleted ? [] : left.flatMap(({ model, pk }) => members.get(memberKey(model.name, pk)) ?? [])
  const marked = kept.filter((member) => !member.left)
  const gone = [...members].flatMap(([place, member]) => (named.has(place) || kept.includes(member) ? [] : [member]))
  if (changed.length + marked.length + gone.length === 0) return false
  const keysIn = (rows: readonly Member[]) => [rows.map(({ model }) => model), rows.map(({ key }) => key)]
  // What this document does not name is written only while the stack still has it: another may have taken it over.
  writes.send({
    text: `WITH stack AS (INSERT INTO stacks (name) VALUES ($1) ON CONFLICT DO NOTHING), gone AS (
        DELETE FROM stack_members WHERE stack = $1 AND (model, key) IN (SELECT * FROM unnest($2::text[], $3::text[]))
      ), marked AS (
        UPDATE stack_members SET left_at = now() WHERE stack = $1 AND (model, key) IN (SELECT * FROM unnest($4::text[], $5::text[])))
      INSERT INTO stack_members (stack, model, key, fields, retain)
      SELECT $1, n.* FROM jsonb_to_recordset($6::jsonb) AS n(model text, key text, fields text[], retain boolean)
      ON CONFLICT (model, key) DO UPDATE SET stack = excluded.stack, fields = excluded.fields, retain = excluded.retain, left_at = NULL`,
    values: [name, ...keysIn(gone), ...keysIn(marked), JSON.stringify(changed)],
  })
  return true
}
