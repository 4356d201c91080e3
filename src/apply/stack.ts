import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { documentLimits } from '../document/document.ts'
import { type Actor, allowsRow, isOutOfBonds } from '../permissions.ts'
import { type LabelledRow, labelledRow, placeOf } from '../plan/claims.ts'
import { dependenciesFirst } from '../plan/dependencies-first.ts'
import { mayKnow } from '../plan/effect.ts'
import { type Conditions, isReviewed, ownerFor } from '../plan/engine.ts'
import type { Loader } from '../plan/load.ts'
import { byKey, keyIn, type Look } from '../plan/look.ts'
import { goingFields } from '../plan/referrers.ts'
import { isSame } from '../plan/same-value.ts'
import { columnOf, labelColumn, quoted } from '../plan/statements.ts'
import { storedKeys } from '../plan/storage.ts'
import { asText, cutTo } from '../sides.ts'
import { type Finding, keyOf, type Objection } from './finding.ts'
import type { Following } from './follow.ts'
import { ownerAfter } from './ownership.ts'
import { refuseIfAny } from './refusal.ts'
import { limited, maxListed, nameOf, rowName, whatIsTaken } from './words.ts'

/**
 * A stack: the objects that one repository manages, by name. Each apply of the stack records what its document names. What no
 * document of it names any more is left over (docs/adr/0138-a-stack-is-what-a-repository-manages.md).
 */

const memberRow = z.object({
  stack: z.string(),
  model: z.string(),
  key: z.string(),
  fields: z.array(z.string()),
  /** The owner under which the stack has it. */
  label: z.string().nullable(),
  retain: z.boolean(),
  left: z.boolean(),
})

const columns = 'm.stack, m.model, m.key, m.fields, m.label, m.retain, m.left_at IS NOT NULL AS left'

type Member = z.output<typeof memberRow>

/** A row that entries name, with the last of them, and what is recorded of it. */
type Named = { readonly finding: Finding; readonly member: Member }

export type Stack = {
  readonly name: string
  /** The rows that entries name and that stand behind the document, by model and key. */
  readonly named: ReadonlyMap<string, Named>
  /** What its documents so far named, by model and key. */
  readonly members: ReadonlyMap<string, Member>
  /** The rows that no entry names any more, and that may be deleted: those that refer to others of them first. */
  readonly left: readonly Following[]
  /** Others that no entry names: they stood at the former run whose document is applied again. */
  readonly stood: readonly LabelledRow[]
  /** Others that no entry names, and that the submitter may not delete: they stay members as they are. */
  readonly denied: readonly LabelledRow[]
  /** Others that no entry names, of entries with `retain`: they stay without the stack. */
  readonly retained: readonly LabelledRow[]
  /** By model and key, all of its members that no entry names, and that are not left over. */
  readonly stays: ReadonlySet<string>
  /** By model and key, the members of entries whose conditions are false. */
  readonly skipped: ReadonlySet<string>
}

/** A row that the document changes, and that another stack has. */
type Taken = {
  readonly finding: Finding
  readonly from: string
  /** Another row, which goes with the deleted one. @property what its name in messages */
  readonly going?: { readonly model: string; readonly key: string; readonly what: string }
}

/** The stack of the document, once all rows are judged. */
export type OfStack = {
  readonly cause: 'stack'
  readonly stack: Stack
  readonly taken: readonly Taken[]
  readonly objections: readonly Objection[]
}

const memberKey = (model: string, key: unknown): string => `${model} ${key}`

const placeIn = (finding: Finding): string => memberKey(finding.step.model.name, keyOf(finding))

function namedBy(stack: string, findings: readonly Finding[], conditions: Conditions): ReadonlyMap<string, Named> {
  const named = new Map<string, Named>()
  for (const finding of findings) {
    const { cause, action, isForeign, step, ownership } = finding
    const key = keyOf(finding)
    if (cause !== 'entry' || isForeign || action === 'delete' || key === undefined) continue
    const place = placeIn(finding)
    const { fields: before = [], retain = false } = named.get(place)?.member ?? {}
    // An entry that leaves its row alone manages no field of it.
    const sent = action === 'leave' ? [] : [...step.identifiers.keys(), ...step.attrs.keys()]
    const fields = [...new Set([...before, ...sent.filter((name) => step.reset?.has(name) !== true)])].sort()
    const isRetained = retain || step.retain === true
    const label = step.model.isLabelled === true ? ownerAfter(ownership, ownerFor(step, conditions)) : null
    const member = { stack, model: step.model.name, key: String(key), fields, label, retain: isRetained, left: false }
    named.set(place, { finding, member })
  }
  return named
}

type Asked = {
  readonly actor: Actor
  readonly conditions: Conditions
  readonly findings: readonly Finding[]
  /** The questions for the rows of entries whose conditions are false: these stay members as they are. */
  readonly skipped: readonly Look[]
}

/** Reads the members of a stack. */
export async function readStack(
  loader: Loader,
  name: string,
  { actor, conditions, findings, skipped: looks }: Asked,
): Promise<Stack> {
  const { world, reader } = loader
  const { registry } = world
  const named = namedBy(name, findings, conditions)
  const text = `SELECT ${columns} FROM stack_members m WHERE m.stack = $1 ORDER BY m.model, m.key`
  const own = await reader.query(memberRow, { text, values: [name] })
  const members = new Map(own.map((each) => [memberKey(each.model, each.key), each]))
  const gone = [...members].flatMap(([place, member]) => {
    const model = registry.byName(member.model)
    return named.has(place) || model === undefined ? [] : [{ place, member, model, look: byKey(model, member.key) }]
  })
  const ofSkipped = gone.length === 0 ? [] : looks
  await loader.load({ looks: [...gone.map(({ look }) => look), ...ofSkipped], isAgain: true })
  const skipped = new Set(ofSkipped.flatMap((look) => world.find(look).map(({ pk }) => memberKey(look.model.name, pk))))
  const standing = gone.flatMap(({ place, member, model }) => {
    const row = skipped.has(place) ? undefined : world.row(model.table, keyIn(member.key))
    return row === undefined ? [] : [{ place, row, member, labelled: labelledRow(model, row) }]
  })
  const since =
    conditions.since === undefined ? undefined : await createdSince(reader, name, conditions.since, standing)
  const rowsOf = Map.groupBy(standing, ({ place, member, labelled: { model, owner } }) => {
    if (!allowsRow(actor, `delete_${model.resource}`, model, owner)) return 'denied'
    return member.retain ? 'retained' : since?.has(place) === false ? 'stood' : 'left'
  })
  const left = new Map((rowsOf.get('left') ?? []).map((each) => [placeOf(each.labelled), each] as const))
  const ordered = dependenciesFirst(left.values(), ({ row, labelled: { model } }) =>
    [...model.fields.values()].flatMap((field) =>
      field.reference === undefined
        ? []
        : storedKeys(field, row).flatMap((key) => left.get(`${world.tableOf(field.reference)} ${key}`) ?? []),
    ),
  ).reverse()
  const stays = new Set(gone.map(({ place }) => place))
  for (const { place } of rowsOf.get('left') ?? []) stays.delete(place)
  const labelled = (of: 'denied' | 'retained' | 'stood') => (rowsOf.get(of) ?? []).map((each) => each.labelled)
  return {
    name,
    named,
    members,
    skipped,
    left: ordered.map(({ member, labelled: { owner, ...row } }) => {
      // What another owner has taken over meanwhile is not deleted as the stack's own.
      const isOwn = owner === null || owner === member.label || owner === conditions.owner
      return { ...row, owner, under: isOwn ? owner : member.label }
    }),
    stood: labelled('stood'),
    denied: labelled('denied'),
    retained: labelled('retained'),
    stays,
  }
}

const takenRow = z.object({ place: z.string(), from: z.string() })

/** The rows that other stacks have: of those that entries name or relabel, and of those that follow from the document. */
export async function readTaken(
  { reader }: Pick<Loader, 'reader'>,
  stack: string,
  findings: readonly Finding[],
): Promise<readonly Taken[]> {
  const changed = findings.filter(
    ({ cause, isForeign, row, ownership }) =>
      !isForeign && row !== undefined && (cause !== 'taken' || ownership?.becomes !== undefined),
  )
  const there = new Map(changed.map((each) => [placeIn(each), each] as const))
  const places = [...there.values()]
  const rows = await reader.query(takenRow, {
    text: `SELECT m.model || ' ' || m.key AS place, m.stack AS from
      FROM unnest($2::text[], $3::text[]) n(model, key) JOIN stack_members m USING (model, key)
      WHERE m.stack <> $1 ORDER BY m.model, m.key`,
    values: [stack, places.map(({ step }) => step.model.name), places.map((each) => String(keyOf(each)))],
  })
  return rows.flatMap(({ place, from }) => {
    const finding = there.get(place)
    return finding === undefined ? [] : [{ finding, from }]
  })
}

const goingRow = memberRow
  .pick({ model: true, key: true })
  .extend({ of: z.string(), name: z.string(), from: z.string() })

/** The rows of other stacks that go with deleted ones, and that the document does not name: tokens go with their user. */
export async function readGoing(
  { reader, world: { registry } }: Loader,
  stack: string,
  findings: readonly Finding[],
  actor: Actor,
): Promise<readonly Taken[]> {
  const named = new Set(findings.map(placeIn))
  const gone = findings.filter(({ action, row }) => action === 'delete' && row !== undefined)
  const values: unknown[] = [stack]
  const parts = [...Map.groupBy(gone, ({ step }) => step.model.table)].flatMap(([table, of]) => {
    const going = goingFields(registry, table)
    const [first] = of
    if (first === undefined || going.length === 0) return []
    const keys = `$${values.push(of.map((each) => String(keyOf(each))))}::${first.step.model.key}[]`
    return going.map(({ model, field }) => {
      const column = quoted(columnOf(model, field.name))
      return `SELECT m.model, m.key, '${table} ' || t.${column} AS of, t.${quoted(labelColumn(model))}::text AS name, m.stack AS from
        FROM unnest(${keys}) k JOIN ${quoted(model.table)} t ON t.${column} = k
        JOIN stack_members m ON m.model = '${model.name}' AND m.key = t.pk::text WHERE m.stack <> $1`
    })
  })
  if (parts.length === 0) return []
  const rows = await reader.query(goingRow, { text: `${parts.join(' UNION ALL ')} ORDER BY model, key`, values })
  const byRow = new Map(gone.map((finding) => [`${finding.step.model.table} ${keyOf(finding)}`, finding]))
  return rows.flatMap(({ model: name, key, of, name: label, from }) => {
    const [finding, model] = [byRow.get(of), registry.byName(name)]
    if (finding === undefined || model === undefined || named.has(memberKey(name, key))) return []
    const what = mayKnow(actor, model, null)
      ? `${model.displayName} ${JSON.stringify(label)}`
      : `a ${model.displayName}`
    return [{ finding, from, going: { model: name, key, what } }]
  })
}

const placeRow = z.object({ place: z.string() })

/** The rows, by model and key, that runs of the stack created after a moment, as far as they are kept. */
async function createdSince(
  reader: EngineReader,
  stack: string,
  moment: string,
  rows: readonly { readonly place: string }[],
): Promise<ReadonlySet<string>> {
  const found = await reader.query(placeRow, {
    // The lock of the stack gives the ends of its runs the order of their applies.
    text: `SELECT c.model || ' ' || c.key AS place FROM object_changes c JOIN runs r ON r.id = c.run_id
      WHERE c.objects && $1::text[] AND c.action = 'create' AND c.model || ' ' || c.key = ANY ($1)
      AND r.finished_at > $2::timestamptz AND r.options->>'stack' = $3`,
    values: [rows.map(({ place }) => place), moment, stack],
  })
  return new Set(found.map(({ place }) => place))
}

/** Whether the rows that are left over are deleted: a reviewed plan lists them, and a request acknowledges their number. */
export const deletesLeft = ({ left }: Stack, conditions: Conditions): boolean =>
  left.length > 0 && (isReviewed(conditions) || conditions.allow.deletes === left.length)

/** Another number than the acknowledged one. Where nothing is left over, a pipeline may send its number again. */
export const otherNumber = (rows: readonly Following[], { mode, allow }: Conditions, actor: Actor): Objection[] =>
  mode === 'apply' && allow.deletes !== null && rows.length > 0 && allow.deletes !== rows.length
    ? [{ is: 'left', rows, acknowledged: allow.deletes, actor }]
    : []

/** A number acknowledges the deletion of all that is left over. */
function withoutRight({ denied, name }: Stack, actor: Actor): Objection[] {
  if (denied.length === 0) return []
  const text = `stack ${JSON.stringify(name)} has objects that no entry names, and that the submitter may not delete`
  const known = knownTo(actor, denied).slice(0, maxListed)
  const listed = known.map((row) => `${nameOf(row)} (delete_${row.model.resource})`).join(', ')
  return [{ is: 'stated', reason: 'permission_denied', text: listed === '' ? text : `${text}: ${listed}` }]
}

/** What stands against the document as a whole. */
export function objectionsOf(stack: Stack, taken: readonly Taken[], conditions: Conditions, actor: Actor): Objection[] {
  const { left, name } = stack
  const { deletes, takeover } = conditions.allow
  const isDeleted = deletesLeft(stack, conditions)
  return [
    // A token that is bound to stacks takes nothing over from others.
    ...(taken.some(({ from }) => isOutOfBonds(actor, from)) ? [{ is: 'unstacked', actor } as const] : []),
    ...(deletes === null || isReviewed(conditions) ? [] : withoutRight(stack, actor)),
    ...(isDeleted && left.length > documentLimits.entries
      ? [{ is: 'left', rows: left, acknowledged: deletes, actor } as const]
      : []),
    ...(takeover || isReviewed(conditions) ? [] : stacked(taken, name)),
  ]
}

const stacked = (taken: readonly Taken[], stack: string) =>
  taken.map(
    ({ finding, from, going }) => ({ is: 'stacked', effect: finding, from, stack, going: going?.what }) as const,
  )

/** The lines of the log about a stack, beside those of its entries and deletions. */
export function stackLines({ stack, taken }: OfStack, actor: Actor, conditions: Conditions): string[] {
  const { name, retained, stood, denied } = stack
  const [leaves, stays] = conditions.mode === 'plan' ? ['would leave', 'would stay'] : ['left', 'stays']
  const text = `stack ${JSON.stringify(name)}`
  return limited([
    ...taken.flatMap(({ finding, from, going }) =>
      finding.cause === 'taken' ? [] : `${whatIsTaken(finding, going?.what)} ${leaves} stack ${JSON.stringify(from)}`,
    ),
    ...noLongerManaged(stack),
    ...leftLines(stack, actor, conditions),
    ...knownTo(actor, stood).map(
      (row) => `${nameOf(row)} is left over: it stood at the former run, which did not write it`,
    ),
    ...knownTo(actor, denied).map(
      (row) => `${nameOf(row)} ${stays} in ${text}: no entry names it, and the submitter may not delete it`,
    ),
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
      return [`${name} is no longer managed, keeps ${isPlain ? cutTo(160, asText(value)) : 'its value'}`]
    })
    return texts.length === 0 ? [] : [`${rowName(finding)}: ${texts.join(', ')}`]
  })
}

/**
 * Records the members of the stack behind the document, as far as they differ.
 *
 * @returns whether anything differs
 * @throws {Refusal} for a row that another stack took meanwhile: its document names the row in another way, and holds no lock of this one
 */
export async function writeMembers(
  reader: EngineReader,
  { stack, taken }: OfStack,
  findings: readonly Finding[],
  conditions: Conditions,
): Promise<boolean> {
  const { name, named, members, skipped, left, stood, denied } = stack
  const differing = [...named].filter(([place, { member }]) => !isDeepStrictEqual(member, members.get(place)))
  // An entry names it again.
  const again = [...skipped].flatMap((place) => members.get(place) ?? []).filter(({ left }) => left)
  const changed = [...differing.map(([, { member }]) => member), ...again]
  const membersOf = (rows: readonly LabelledRow[]) =>
    rows.flatMap(({ model, pk }) => members.get(memberKey(model.name, pk)) ?? [])
  const unnamed = membersOf(deletesLeft(stack, conditions) ? stood : [...left, ...stood])
  const marked = unnamed.filter((member) => !member.left)
  const stay = new Set([...unnamed, ...membersOf(denied)])
  const gone = [...members].flatMap(([place, member]) =>
    named.has(place) || skipped.has(place) || stay.has(member) ? [] : [member],
  )
  if (changed.length + marked.length + gone.length === 0) return false
  const keysIn = (rows: readonly Member[]) => [rows.map(({ model }) => model), rows.map(({ key }) => key)]
  // A key of another stack that may be taken: as it was read, or of a row that the document creates again.
  const free = [
    ...taken.map(({ finding, from }) => `${placeIn(finding)} ${from}`),
    ...differing.flatMap(([place, { finding }]) => (finding.row === undefined ? [place] : [])),
  ]
  const written = await reader.query(placeRow, {
    text: `WITH stack AS (INSERT INTO stacks (name) VALUES ($1) ON CONFLICT DO NOTHING), gone AS (
        DELETE FROM stack_members WHERE stack = $1 AND (model, key) IN (SELECT * FROM unnest($2::text[], $3::text[]))
        RETURNING model || ' ' || key AS place
      ), marked AS (
        UPDATE stack_members SET left_at = now() WHERE stack = $1 AND (model, key) IN (SELECT * FROM unnest($4::text[], $5::text[]))
      ), written AS (
        INSERT INTO stack_members AS m (stack, model, key, fields, label, retain)
        SELECT $1, n.* FROM jsonb_to_recordset($6::jsonb) AS n(model text, key text, fields text[], label text, retain boolean)
        ON CONFLICT (model, key) DO UPDATE SET stack = excluded.stack, fields = excluded.fields, label = excluded.label,
          retain = excluded.retain, left_at = NULL
          WHERE m.stack = $1 OR ARRAY[m.model || ' ' || m.key, m.model || ' ' || m.key || ' ' || m.stack] && $7::text[]
        RETURNING model || ' ' || key AS place
      ) SELECT place FROM gone UNION ALL SELECT place FROM written`,
    values: [name, ...keysIn(gone), ...keysIn(marked), JSON.stringify(changed), free],
  })
  const places = new Set(written.map(({ place }) => place))
  const expected = new Set(differing.map(([place]) => place))
  const lost = findings.filter((finding) => {
    const place = placeIn(finding)
    return !places.has(place) && (finding.action === 'delete' ? members.has(place) : expected.has(place))
  })
  if (lost.length > 0) refuseIfAny(stacked(await readTaken({ reader }, name, lost), name))
  return true
}
