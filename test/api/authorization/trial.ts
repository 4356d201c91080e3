import { expect } from 'vitest'
import { type Answer, type Installation, raw, rows, sql } from '../../support/kit.ts'
import { type Actor, type Cast, castFor } from './actors.ts'
import { type Ask, outcomeOf, saysExpired } from './answers.ts'
import type { Row } from './matrix.ts'

export type Prepare = (row: Row, actor: Actor) => Promise<Ask>
export type Describe = (answer: Answer, row: Row, ask: Ask) => string

export type Stage = {
  /** Tries every actor on a row. First those that must be refused: their requests may write nothing. */
  try(row: Row, prepare: Prepare): Promise<void>
}

/** The names of groups that a row may leave members in, and of tokens that a row leaves. */
export const prefix = 'matrix'

/** @param isIndependent whether the accepted actors of a row may send their requests at once */
export function stage(
  there: Installation,
  describe: Describe = outcomeOf,
  isIndependent: (row: Row) => boolean = () => false,
): Stage {
  const cast = castFor(there)
  const { db } = there
  const asking = contentsOf(there)

  /** An answer without the line that was sent, which an error repeats: it has the guess itself. */
  const withoutSource = (text: string): string =>
    JSON.stringify(JSON.parse(text, (name, value) => (name === 'source' ? undefined : value)))

  async function answerTo({ asker, headers }: Actor, ask: Ask): Promise<Answer> {
    const { method, url, body, missing, otherGuess } = ask
    const type = body === undefined || typeof body === 'string' ? {} : { 'content-type': 'application/json' }
    const payload = typeof body === 'object' ? JSON.stringify(body) : body
    const request = { method, headers: { ...type, ...headers, ...ask.headers }, ...(payload && { payload }) }
    const answer = await asker.send({ ...request, url })
    if (answer.status === 404 && missing !== undefined) {
      const { status, text } = await asker.send({ ...request, url: missing })
      expect({ status, text }, 'of what is not there').toEqual({ status: answer.status, text: answer.text })
    }
    if (answer.status === 403 && otherGuess !== undefined) {
      const other = await asker.send({ ...request, url, payload: otherGuess })
      expect(withoutSource(other.text), 'of another guess').toBe(withoutSource(answer.text))
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
        found[actor.name] = describe(answer, row, ask)
        if (cast.unauthenticated.includes(actor.name)) unknown.add(withoutTrace(answer))
      }
      const refused = []
      for (const { actor, cell } of parts) if (isRefusal(cell)) refused.push({ actor, ask: await prepare(row, actor) })
      const contents = await asking
      const before = await contents()
      await Promise.all(refused.map(({ actor, ask }) => play(actor, ask)))
      expect(found).toEqual(Object.fromEntries(refused.map(({ actor: { name } }) => [name, expected[name]])))
      expect(await contents(), 'after what was refused').toEqual(before)
      const accepted = parts.filter(({ cell }) => !isRefusal(cell))
      const together = isIndependent(row) ? accepted.length : 1
      for (let at = 0; at < accepted.length; at += together)
        await Promise.all(
          accepted.slice(at, at + together).map(async ({ actor }) => play(actor, await prepare(row, actor))),
        )
      expect(found).toEqual(expected)
      if (row.cells.unauthenticated === '401') expect([...unknown], 'one 401 for all reasons').toHaveLength(1)
      // Rights that were given do not reach the next row.
      await rows(
        db,
        sql`
        DELETE FROM memberships m USING groups g WHERE g.pk = m.group_pk AND starts_with(g.name, ${prefix})`,
      )
      await db.token.deleteMany({ where: { identifier: { startsWith: prefix } } })
    },
  }
}

type Part = { readonly actor: Actor; readonly cell: string }

async function partsOf(cast: Cast, { cells, needs }: Row): Promise<Part[]> {
  const columns = await Promise.all(
    Object.keys(cells).map(async (column): Promise<Part[]> => {
      const cell = cells[column] ?? 'no cell'
      const each = cell.split(', ')
      const actors = await cast.actors(column, needs)
      if (actors.length === 0) expect(cell, column).toBe('-')
      return actors.map((actor, index) => ({ actor, cell: (each.length === 1 ? cell : each[index]) ?? 'no cell' }))
    }),
  )
  return columns.flat()
}

/** An answer without what differs in every answer, and without what only who has the whole of an expired token learns. */
function withoutTrace({ status, headers, text }: Answer): string {
  // How many failures are left is that of the address, whatever the reason.
  const { 'x-request-id': _id, date: _date, ratelimit: _left, 'content-length': _length, ...others } = headers
  return JSON.stringify([status, others, text.replace(new RegExp(saysExpired), '')])
}

const isRefusal = (cell: string): boolean => /^[45]\d\d/.test(cell)

/** Tables that workers write at any time: row counts, heartbeats and sums. */
const restless = ['row_counts', 'queue_heartbeats', 'worker_formats', 'metric_sums', 'refusals', '_prisma_migrations']

/** Reads the row count of every table, and a digest of the row versions, which every write changes. */
async function contentsOf({ db }: Installation): Promise<() => Promise<unknown>> {
  const tables = await rows<{ name: string }>(
    db,
    sql`
    SELECT table_name::text AS name FROM information_schema.tables
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> ALL(${restless}) ORDER BY 1`,
  )
  expect(tables.length).toBeGreaterThan(15)
  const version = 'sum(hashtextextended(t.ctid::text || t.xmin::text, 0))::text AS versions'
  const each = tables.map(({ name }) => `SELECT '${name}' AS name, count(*), ${version} FROM "${name}" t`)
  return () => rows(db, sql`${raw(each.join(' UNION ALL '))}`)
}
