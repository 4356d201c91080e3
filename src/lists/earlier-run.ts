import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { Values } from '../db/raw.ts'
import type { Actor } from '../permissions.ts'
import type { ListSpec } from './list.ts'
import { askRuns, runsOfObjects, seenRuns } from './runs.ts'

/** The last applied run before another one, among those that the caller sees. */

export type Earlier = {
  readonly id: string
  readonly title: string
  readonly createdAt: Date
  readonly endedAt: Date
  readonly submitter: number | null
}

const row: z.ZodType<Earlier> = z.object({
  id: z.guid(),
  title: z.string(),
  createdAt: z.date(),
  endedAt: z.date(),
  submitter: z.int().nullable(),
})

/** The most runs of one submitter that are searched for one of the same title. */
const mostOfSubmitter = 1_000

type Of = {
  /** The slug of an application, whose earlier runs have the same; null for a blueprint. */
  readonly slug: string | null
  /** The title of a blueprint. Its earlier run has the same title and submitter, or else changed one of its objects. */
  readonly title: string
  readonly submitter: number | null
  /** The objects in the form of the filter `object`: `application:shop`. */
  readonly objects: readonly string[]
  /** Only runs that were recorded before this time. */
  readonly before: Date
}

/** @returns undefined when there is none */
export async function earlierRun(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  { slug, title, submitter, objects, before }: Of,
): Promise<Earlier | undefined> {
  const values = new Values()
  const at = values.bind(before)
  const [among, first] = slug === null ? amongSets(values.bind(title)) : [`runs.slug = ${values.bind(slug)}`, '']
  const [found] = await askRuns(db, row, {
    text: `SELECT runs.id, runs.title, runs.created_at AS "createdAt",
        coalesce(runs.finished_at, runs.created_at) AS "endedAt", runs.submitter_pk AS submitter FROM runs
      WHERE ${among} AND runs.created_at < ${at}::timestamptz AND runs.applied AND runs.mode = 'apply'
        AND ${seenRuns(spec, actor, values)}
      ORDER BY ${first} runs.created_at DESC, runs.id DESC LIMIT 1`,
    values: values.list,
  })
  return found

  function amongSets(same: string): [string, string] {
    const changed = runsOfObjects(spec, actor, objects, values)
    const own = `SELECT r.id FROM (SELECT id, title FROM runs WHERE submitter_pk = ${values.bind(submitter)}::integer
      AND created_at < ${at}::timestamptz ORDER BY created_at DESC, id DESC LIMIT ${mostOfSubmitter}) r WHERE r.title = ${same}`
    return [
      `runs.slug IS NULL AND runs.id IN (${[own, ...changed].join(' UNION ALL ')})`,
      `(runs.title = ${same}) DESC,`,
    ]
  }
}
