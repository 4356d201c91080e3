import { randomInt, randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { uuid7 } from '../ids.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Mode } from './engine.ts'
import { type LinkLook, type Look, questionOf, scopeOf } from './look.ts'
import { asKey, columnsOf, keysIn, linksOf, nextKey, onceFor, ownRows, quoted } from './statements.ts'
import type { Identity } from './storage.ts'
import { World } from './world.ts'

/** Loads rows into the world: one statement for all questions that are asked at once. */

export type Questions = {
  readonly looks?: readonly Look[]
  readonly links?: readonly LinkLook[]
  /** Rows of models with integer keys: an apply draws a key for each that is not there. */
  readonly newKeys?: readonly Look[]
  /** Whether the rows are read again: behind locks, where another transaction may have changed them. */
  readonly isAgain?: boolean
}

const key = z.union([z.string(), z.int()])

/** An answer: the position of its group, that of its question in the group, and a row, or keys. */
const answer = z.object({
  part: z.int(),
  at: z.int(),
  row: z.looseObject({ pk: key, links: z.record(z.string(), z.array(key)).optional() }).nullable(),
  keys: z.array(key).nullable(),
})

const keyRow = z.object({ key: z.int() })

/** The most rows that a question finds. For nearly all of them, more than one is an error. */
const mostFound = 10

export class Loader {
  readonly world: World
  readonly reader: EngineReader
  /** The keys that were drawn and are not taken yet, by table; undefined where new rows get planned ones. */
  readonly #drawn: Map<string, number[]> | undefined

  /** @param mode new rows of an apply get numbers of sequences: a rollback does not return them, so a plan has others */
  constructor(reader: EngineReader, registry: Registry, mode: Mode = 'plan') {
    this.reader = reader
    this.world = new World(registry)
    this.#drawn = mode === 'apply' ? new Map() : undefined
  }

  /** @returns whether anything was asked: the world knows the other answers */
  async load({ looks = [], links = [], newKeys = [], isAgain = false }: Questions): Promise<boolean> {
    const { world } = this
    const toDraw = this.#drawn === undefined ? [] : newKeys
    const unknown = looks.filter((look) => isAgain || !world.knows([look]))
    const asked = new Map(unknown.map((look) => [questionOf(look), look]))
    const groups: Group[] = [
      ...[...Map.groupBy(asked.values(), shapeOf).values()].map((of) => ({ is: 'rows', of }) as const),
      ...[...Map.groupBy(toDraw, shapeOf).values()].map((of) => ({ is: 'keys', of }) as const),
      ...[...Map.groupBy(links, shapeOfLinks).values()].map((of) => ({ is: 'links', of }) as const),
    ]
    if (groups.length === 0) return false
    const values: unknown[] = []
    const parts = groups.map((group, part) => partOf(world.registry, group, part, (value) => `$${values.push(value)}`))
    const answers = await this.reader.query(answer, { text: parts.join(' UNION ALL '), values })
    const byPart = Map.groupBy(answers, ({ part }) => part)
    for (const [part, group] of groups.entries()) this.#add(group, byPart.get(part) ?? [])
    return true
  }

  /** The keys of a new row. @param chosen the one that its entry chooses, in a model with UUID keys */
  async identify(model: Model, chosen: string | undefined): Promise<Identity> {
    if (model.key === 'uuid') return { pk: chosen ?? uuid7() }
    const uuid = model.uuid ? { uuid: randomUUID() } : {}
    if (this.#drawn !== undefined)
      return { pk: this.#drawn.get(model.table)?.shift() ?? (await this.#nextKey(model)), ...uuid }
    const numbered = (model.numbered ?? []).map((column) => [column, plannedKey()])
    return { pk: plannedKey(), ...uuid, ...Object.fromEntries(numbered) }
  }

  async #nextKey(model: Model): Promise<number> {
    const text = `SELECT ${nextKey(model.table)}::integer AS key`
    const [row] = await this.reader.query(keyRow, { text, values: [] })
    if (row === undefined) throw new Error(`${model.table} has no next key`)
    return row.key
  }

  #add(group: Group, answers: readonly z.output<typeof answer>[]): void {
    const byQuestion = Map.groupBy(answers, ({ at }) => at - 1)
    switch (group.is) {
      case 'rows':
        for (const [at, look] of group.of.entries())
          this.world.answer(look, byQuestion.get(at)?.flatMap(({ row }) => row ?? []) ?? [])
        return
      case 'links':
        for (const [at, look] of group.of.entries()) this.world.answerLinks(look, byQuestion.get(at)?.[0]?.keys ?? [])
        return
      case 'keys': {
        // PostgreSQL draws them in any order of the rows: the first new row gets the lowest.
        const drawn = answers
          .flatMap(({ keys }) => keys ?? [])
          .filter((each) => typeof each === 'number')
          .sort((one, other) => one - other)
        const table = group.of[0]?.model.table ?? ''
        this.#drawn?.getOrInsertComputed(table, () => []).push(...drawn)
        return
      }
      default:
        group satisfies never
    }
  }
}

/** Plans take the highest numbers. Each process begins at a random one, so that plans of two processes rarely wait for each other. */
const most = 2_147_483_647
let planned = most - randomInt(1, 1_000_000_000)
const plannedKey = () => (planned = planned > most / 2 ? planned - 1 : most)

type Group =
  | { readonly is: 'rows' | 'keys'; readonly of: readonly Look[] }
  | { readonly is: 'links'; readonly of: readonly LinkLook[] }

/** Questions of one shape are a part of the statement. */
const shapeOf = (look: Look): string => [scopeOf(look), look.folded, look.until, look.most, ...look.columns].join(' ')

const shapeOfLinks = ({ model, name, among }: LinkLook) => `${model.name} ${name} ${among === undefined}`

/** Names a parameter with this value: `$1`. */
type Name = (value: unknown) => string

/**
 * A part of the statement. The LIMIT makes PostgreSQL look up each value in an index: a join would be planned as a full scan while
 * the table is small, and the cached plan would stay when the table has grown.
 */
function partOf(registry: Registry, group: Group, part: number, name: Name): string {
  if (group.is === 'links') return linksPart(registry, group.of, part, name)
  const [first] = group.of
  if (first === undefined) throw new Error('a part without questions')
  const { model, columns, folded, field, until, most = mostFound } = first
  const count = Math.max(columns.length, 1)
  const lists = Array.from({ length: count }, (_, index) => name(group.of.map(({ values }) => values[index])))
  const sent = `unnest(${lists.map((list) => `${list}::text[]`).join(', ')}) WITH ORDINALITY s(${lists.map((_, index) => `v${index}`).join(', ')}, at)`
  const { value, from } =
    field === undefined
      ? { value: '', from: `${quoted(model.table)} t` }
      : keysIn(model, field.name, field.reference?.target)
  const compared =
    field === undefined
      ? columns.map((column, index) => comparison(registry, model, column, `s.v${index}`, folded))
      : [{ stored: value, given: asKey(registry.targets.get(field.reference?.target ?? '')?.key ?? 'uuid', 's.v0') }]
  // OFFSET 0 computes each value once, and not for each row that a scan of a small table compares.
  const given = `(SELECT s.*, ${compared.map((each, index) => `${each.given} AS k${index}`).join(', ')} FROM ${sent} OFFSET 0) n`
  const where = compared.map(({ stored }, index) => `${stored} = n.k${index}`)
  if (field !== undefined) where.push(...ownRows(model))
  if (until !== undefined) where.push(`(t.${quoted(until)} IS NULL OR t.${quoted(until)} > now())`)
  if (group.is === 'keys')
    return `SELECT ${part} AS part, n.at::integer AS at, NULL::jsonb AS row, to_jsonb(ARRAY[${nextKey(model.table)}]) AS keys
      FROM ${given} WHERE NOT EXISTS (SELECT FROM ${from} WHERE ${where.join(' AND ')})`
  const order = folded === true ? ` ORDER BY t.${quoted(columns[0] ?? 'pk')} <> n.v0` : ''
  return `SELECT ${part} AS part, n.at::integer AS at, to_jsonb(r) AS row, NULL::jsonb AS keys
    FROM ${given}, LATERAL (SELECT ${rowOf(registry)(model)} FROM ${from} WHERE ${where.join(' AND ')}${order} LIMIT ${most}) r`
}

function linksPart(registry: Registry, links: readonly LinkLook[], part: number, name: Name): string {
  const [{ model, name: field, among } = { model: undefined, name: '', among: undefined }] = links
  const [found, link] = (model && linksOf(model).find(([each]) => each.name === field)) ?? []
  if (model === undefined || found === undefined || link === undefined) throw new Error(`${field} is no link`)
  const type = registry.targets.get(found.reference?.target ?? '')?.key ?? 'text'
  const list = name(JSON.stringify(links.map(({ pk, among }, at) => ({ at: at + 1, pk, among }))))
  const isNamed = among === undefined ? '' : ` AND l.${quoted(link.other)} = ANY(n.among)`
  const keys = `SELECT l.${quoted(link.other)} FROM ${quoted(link.table)} l WHERE l.${quoted(link.own)} = n.pk${isNamed} ORDER BY 1`
  return `SELECT ${part} AS part, n.at, NULL::jsonb AS row, to_jsonb(ARRAY(${keys})) AS keys
    FROM jsonb_to_recordset(${list}::jsonb) AS n(at integer, pk ${model.key}, among ${type}[])`
}

/** Values come as texts: one of the wrong type finds no row, and does not fail the transaction. */
function comparison(
  registry: Registry,
  model: Model,
  column: string,
  value: string,
  folded: true | undefined,
): { readonly stored: string; readonly given: string } {
  const name = `t.${quoted(column)}`
  if (folded) return { stored: `compared_name(${name})`, given: `compared_name(${value})` }
  const field = [...model.fields.values()].find(({ storage }) => storage.in === 'column' && storage.column === column)
  const type = column === 'pk' ? model.key : registry.targets.get(field?.reference?.target ?? '')?.key
  return type === undefined ? { stored: `${name}::text`, given: value } : { stored: name, given: asKey(type, value) }
}

/** The label under which a row is managed, its maker and the time: `apply/ownership.ts` reads them. */
const origin = ({ isLabelled }: Model): string[] =>
  isLabelled === true
    ? [
        't."owner"',
        't."created_by"',
        't."created_at"',
        '(SELECT u.username FROM users u WHERE u.pk = t."created_by") AS "created_by_name"',
      ]
    : []

/** What is read of a row: all columns, and the links that are never very many. */
const rowOf = onceFor(({ models: all }: Registry) =>
  onceFor((model: Model): string => {
    const models = all.filter(({ table }) => table === model.table)
    const columns = [...new Set(models.flatMap(columnsOf))].map((column) => `t.${quoted(column)}`)
    const links = models.flatMap(linksOf).flatMap(([{ name }, { table, own, other, many }]) => {
      const keys = `SELECT l.${quoted(other)} FROM ${quoted(table)} l WHERE l.${quoted(own)} = t.pk ORDER BY 1`
      return many === true ? [] : [`'${name}', ARRAY(${keys})`]
    })
    const linked = links.length === 0 ? [] : [`jsonb_build_object(${links.join(', ')}) AS links`]
    return [...columns, ...origin(model), ...linked].join(', ')
  }),
)
