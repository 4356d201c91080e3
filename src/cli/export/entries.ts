import { Find, KeyOf } from '../../document/document.ts'
import { Expression } from '../../document/tags.ts'
import type { Field, Model, Values } from '../../models/define.ts'
import { dependenciesFirst } from '../../plan/dependencies-first.ts'
import { UsageError } from '../exit.ts'
import { shown } from '../output.ts'
import { isNarrow, type Selection } from './read.ts'
import { byText, digestOf, identifiersOf, labelOf, naturalKey, type Row, type Rows, targetOf, targets } from './rows.ts'
import { nameVariables, type Variable } from './variables.ts'

/** Converts rows to entries of a document, in an order in which each reference is to an earlier entry. */

export type Chosen = {
  /** All rows that were read. */
  readonly all: Rows
  /** Those that are exported, in an order in which each reference is to an earlier one. */
  readonly rows: readonly Row[]
  readonly variables: ReadonlyMap<Row, readonly Variable[]>
  readonly isWithoutSecrets: boolean
  /** Rows that these refer to, and that are not among them. */
  readonly outside: readonly Row[]
}

/**
 * @throws {UsageError} where there are no rows, or some that a document cannot tell apart, and for an application that is not there
 * @throws {Changed} for a reference to a row that was not read
 */
export function choose(rows: Rows, selection: Selection): Chosen {
  const chosen = chosenOf(rows, selection)
  if (chosen.size === 0) throw new UsageError('There is nothing to export.')
  const ordered = inOrder(rows, chosen)
  const outside = [...referredByAll(rows, ordered)].filter((row) => !chosen.has(row))
  const unclear = [
    ...ordered.filter((row) => !rows.isDistinct(row)),
    ...outside.filter((row) => rows.nameOf(row) === undefined && !rows.isDistinct(row)),
  ]
  if (unclear.length > 0) throw new UsageError(listed(unclear.map((row) => shown(ambiguous(row)))))
  const { isWithoutSecrets = false } = selection
  const secrets = isWithoutSecrets ? [] : ordered.flatMap((row) => row.secrets.map((field) => ({ row, field })))
  const variables = Map.groupBy(nameVariables(secrets), ({ row }) => row)
  return { all: rows, rows: ordered, variables, isWithoutSecrets, outside }
}

export type ExportedDocument = {
  /** The relative path, with slashes: `3-applications/team-a/grafana.yaml`. */
  readonly path: string
  readonly title: string
  /** A row with another owner names it. */
  readonly owner: string | undefined
  /** The rows, in the order of the document. */
  readonly rows: readonly Row[]
}

/** @throws {UsageError} for rows that no document can express */
export function entriesOf({ all: rows, variables, isWithoutSecrets }: Chosen, { rows: part, owner }: ExportedDocument) {
  const within = new Set(part)
  const referred = referredByAll(rows, part)
  const errors: string[] = []
  const entries = part.map((row) => {
    const hasId = referred.has(row) && rows.nameOf(row) === undefined
    const identifiers = identifiersOf(row)
    const attrs: Record<string, unknown> = {}
    for (const field of row.model.fields.values()) {
      if (identifiers.includes(field.name) || row.isGenerated || (field.secret && isWithoutSecrets)) continue
      // Users are no configuration: fields with users are left out.
      if (field.reference !== undefined && targetOf(rows.registry, field) === undefined) continue
      const variable = variables.get(row)?.find((each) => each.field === field)
      const value = variable === undefined ? plainValue(row.values, field) : toEnv(variable)
      if (value === undefined && field.required) errors.push(`${labelOf(row)} has no ${field.name}, which is required.`)
      if (value === undefined) continue
      attrs[field.name] = field.reference === undefined ? value : referencesOf(rows, within, row, field)
    }
    return {
      model: row.model.name,
      ...(hasId && { id: idOf(row) }),
      ...(row.owner !== null && row.owner !== owner && { owner: row.owner }),
      identifiers: naturalKey(row),
      attrs,
    }
  })
  if (errors.length > 0) throw new UsageError(listed(errors.map(shown)))
  return entries
}

const referredByAll = (rows: Rows, some: readonly Row[]): ReadonlySet<Row> =>
  new Set(some.flatMap((row) => rows.referred(row)))

const maxListed = 20

/** A list of lines. A last one counts those beyond the limit. */
export function listed(lines: readonly string[]): string {
  const more = lines.length - maxListed
  return [...lines.slice(0, maxListed), ...(more > 0 ? [`${more} more are not listed.`] : [])].join('\n')
}

const ambiguous = (row: Row): string =>
  `More than one ${row.model.displayName} has ${JSON.stringify(naturalKey(row))}: a document cannot tell them apart. Rename one.`

function chosenOf(rows: Rows, selection: Selection): ReadonlySet<Row> {
  const { models, owner, applications } = selection
  const isChosen = ({ model }: Row) => models.includes(model)
  if (!isNarrow(selection)) return new Set(rows.all.filter(isChosen))
  const isOwned = (row: Row) => row.model.isLabelled === true && (owner === undefined || row.owner === owner)
  const named = applications === undefined ? rows.all : withProviders(rows, applications)
  const chosen = new Set(named.filter(isOwned))
  // The set grows while it is walked: added rows are visited too.
  for (const row of chosen)
    for (const other of rows.referred(row)) if (other.model.isLabelled !== true) chosen.add(other)
  return new Set([...chosen].filter(isChosen))
}

/** @throws {UsageError} for a slug that no application has */
function withProviders(rows: Rows, slugs: readonly string[]): Row[] {
  const found = slugs.map((slug) => {
    const row = rows.all.find(({ model, values }) => model.target === 'application' && values.slug === slug)
    if (row === undefined)
      throw new UsageError(`--application: there is no application ${shown(JSON.stringify(slug))}.`)
    return row
  })
  return found.flatMap((row) => [row, ...providersOf(rows, row)])
}

export const providersOf = (rows: Rows, application: Row): Row[] =>
  rows.referred(application).filter(({ model }) => model.isLabelled === true)

/** Orders rows by model and name, each after the rows to which it refers. */
function inOrder(rows: Rows, chosen: ReadonlySet<Row>): readonly Row[] {
  const order: readonly string[] = targets
  const place = ({ target }: Model) => order.indexOf(target)
  const sorted = [...chosen]
    .map((row) => ({ row, text: JSON.stringify(Object.values(naturalKey(row))) }))
    .sort(
      ({ row: { model: one }, text }, { row: { model: other }, text: otherText }) =>
        place(one) - place(other) || byText(one.name, other.name) || byText(text, otherText),
    )
  const all = sorted.map(({ row }) => row)
  return dependenciesFirst(all, (row) => rows.referred(row).filter((other) => chosen.has(other)))
}

/** The value of a secret. One that the service generates is rotated here: a file that is applied again keeps the new one. */
function toEnv({ name, mayBeEmpty, field }: Variable) {
  const env = new Expression('!Env', mayBeEmpty ? [name, ''] : name)
  return field.generate === undefined ? env : { create: env }
}

/** The value of a field without a secret. A row of an earlier version may lack it: it has its default now. */
function plainValue(values: Values, { name, schema, initial }: Field): unknown {
  const value = values[name] ?? null
  return value !== null || schema.safeParse(null).success ? value : initial
}

/** Links are sets: they are sorted, because their order comes from keys. */
function referencesOf(rows: Rows, chosen: ReadonlySet<Row>, row: Row, field: Field): unknown {
  const value = row.values[field.name]
  const tagFor = (pk: unknown) => {
    const other = rows.find(row, { field, pk })
    const name = rows.nameOf(other)
    if (name !== undefined) return name
    return chosen.has(other) ? new KeyOf(idOf(other)) : new Find(other.model.name, naturalKey(other))
  }
  if (!Array.isArray(value)) return value === null ? null : tagFor(value)
  const items = value.map(tagFor)
  const textOf = (item: string | KeyOf | Find) => (typeof item === 'string' ? item : JSON.stringify(item))
  return field.storage.in === 'link' ? items.sort((one, other) => byText(textOf(one), textOf(other))) : items
}

const idOf = (row: Row): string => `${row.model.resource}-${digestOf(row)}`
