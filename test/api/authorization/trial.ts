import { expect } from 'vitest'
import { sql, statement } from '../../../src/db/sql.ts'
import type { Answer } from '../../support/asker.ts'
import type { Installation } from '../../support/installation.ts'
import { type Actor, type Cast, castFor } from './actors.ts'
import { type Ask, told } from './answers.ts'
import type { Row } from './matrix.ts'

export type Prepare = (row: Row, actor: Actor) => Promise<Ask>
export type Tell = (answer: Answer, row: Row, ask: Ask) => string

export type Stage = {
  /** Tries every actor on a row, those first who are to be refused: of what they ask nothing may be written. */
  try(row: Row, prepare: Prepare): Promise<void>
}

/** What groups are called that a row may leave members in. */
export const prefix = 'matrix'

/** @param isIndependent whether the accepted of a row may ask all at once */
export function stage(
  there: Installation,
  tell: Tell = told,
  isIndependent: (row: Row) => boolean = () => false,
): Stage {
  const cast = castFor(there)
  const { db } = there
  const asking = contentsOf(there)

  async function answerTo({ asker, headers }: Actor, ask: Ask): Promise<Answer> {
    const { method, url, body, missing } = ask
    const type = body === undefined || typeof body === 'string' ? {} : { 'content-type': 'application/json' }
    const payload = typeof body === 'object' ? JSON.stringify(body) : body
    const request = { method, headers: { ...type, ...headers, ...ask.headers }, ...(payload && { payload }) }
    const answer = await asker.send({ ...request, url })
    if (answer.status === 404 && missing !== undefined) {
      const { status, text } = await asker.send({ ...request, url: missing })
      expect({ status, text }, 'of what is not there').toEqual({ status: answer.status, text: answer.text })
    }
    return answer
  }

  return {
    async try(row, prepare) {
      const parts = await partsOf(cast, row)
      const expected = Object.fromEntries(parts.map(({ actor: { name }, cell }) => [name, cell]))
      const found: Record<string, string> = {}
      const unknown = new Set<string>()
      const play = async (actor: Actor, ask: Ask) => {
        const answer = await answerTo(actor, ask)
        found[actor.name] = tell(answer, row, ask)
        if (cast.nobodies.includes(actor.name)) unknown.add(withoutTrace(answer))
      }
      const refused = []
      for (const { actor, cell } of parts) if (isRefusal(cell)) refused.push({ actor, ask: await prepare(row, actor) })
      const contents = await asking
      const before = await contents()
      for (const { actor, ask } of refused) await play(actor, ask)
      expect(found).toEqual(Object.fromEntries(refused.map(({ actor: { name } }) => [name, expected[name]])))
      expect(await contents(), 'after what was refused').toEqual(before)
      const accepted = parts.filter(({ cell }) => !isRefusal(cell))
      const together = isIndependent(row) ? accepted.length : 1
      for (let at = 0; at < accepted.length; at += together)
        await Promise.all(
          accepted.slice(at, at + together).map(async ({ actor }) => play(actor, await prepare(row, actor))),
        )
      expect(found).toEqual(expected)
      if (row.cells.nobody === '401') expect([...unknown], 'one 401 for all reasons').toHaveLength(1)
      // Rights that were given do not reach the next row.
      await db.query(sql`
        DELETE FROM memberships m USING groups g WHERE g.pk = m.group_pk AND starts_with(g.name, ${prefix})`)
    },
  }
}

type Part = { readonly actor: Actor; readonly cell: string }

async function partsOf(cast: Cast, { cells, needs }: Row): Promise<Part[]> {
  const columns = await Promise.all(
    cast.columns.map(async (column): Promise<Part[]> => {
      const cell = cells[column] ?? 'no cell'
      const each = cell.split(', ')
      const actors = await cast.actors(column, needs)
      if (actors.length === 0) expect(cell, column).toBe('-')
      return actors.map((actor, index) => ({ actor, cell: (each.length === 1 ? cell : each[index]) ?? 'no cell' }))
    }),
  )
  return columns.flat()
}

/** All of an answer but what no two have alike. */
function withoutTrace({ status, headers, text }: Answer): string {
  const { 'x-request-id': _id, date: _date, ...others } = headers
  return JSON.stringify([status, others, text])
}

const isRefusal = (cell: string): boolean => /^[45]\d\d/.test(cell)

/** Tables that change by themselves: workers add up the one, and write the other to show that they are there. */
const restless = ['row_counts', 'queue_heartbeats', '_prisma_migrations']

/** Asks of every table how many rows it has, and for a digest of their versions: a row that is written gets another. */
async function contentsOf({ db }: Installation): Promise<() => Promise<unknown>> {
  const tables = await db.query<{ name: string }>(sql`
    SELECT table_name::text AS name FROM information_schema.tables
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> ALL(${restless}) ORDER BY 1`)
  expect(tables.length).toBeGreaterThan(15)
  const version = 'sum(hashtextextended(t.ctid::text || t.xmin::text, 0))::text AS versions'
  const each = tables.map(({ name }) => `SELECT '${name}' AS name, count(*), ${version} FROM "${name}" t`)
  return () => db.query(statement(each.join(' UNION ALL '), []))
}
