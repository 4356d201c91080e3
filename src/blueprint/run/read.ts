import { z } from 'zod'
import type { Db } from '../../db/client.ts'
import { sql } from '../../db/sql.ts'
import type { Engine } from '../inspect.ts'
import { mask } from '../mask.ts'
import { parse, print } from '../yaml.ts'
import { live, type RunState } from './life.ts'
import { impersonatorOf, sealedColumn } from './record.ts'

/** A run as people read it: secrets masked. */
export type RunView = {
  id: string
  state: RunState
  title: string
  submitterPk: number | null
  /** Who really submitted it, when he did so as somebody else. */
  impersonatorPk: number | null
  requestId: string
  applied: boolean | null
  reason: string | null
  logs: string[]
  rings: number
  /** YAML, secrets masked. */
  blueprint: string
  /** Values that the service made up, by entry and member, while they may still be read. */
  generated: Record<string, Record<string, string>>
  createdAt: Date
  startedAt: Date | null
  finishedAt: Date | null
}

const generatedSchema = z.record(z.string(), z.record(z.string(), z.string()))

/** @returns undefined when there is no such run */
export async function readRun(db: Db, { registry, keyring }: Engine, id: string): Promise<RunView | undefined> {
  const found = await db.prisma.run.findUnique({ where: { id } })
  if (found === null) return undefined
  const {
    id: key,
    state,
    blueprint,
    generated,
    generatedUntil,
    submitterPk,
    requestId,
    title,
    applied,
    reason,
    logs,
    rings,
    createdAt,
    startedAt,
    finishedAt,
  } = found
  const readable = generated !== null && generatedUntil !== null && generatedUntil > new Date()
  return {
    ...{ id: key, title, submitterPk, requestId, applied, reason, logs, rings, createdAt, startedAt, finishedAt },
    impersonatorPk: impersonatorOf(found)?.pk ?? null,
    state: state === 'queued' && (await isLocked(db, id)) ? live({ state, rings }, 'lock').state : state,
    blueprint: print(mask(parse(keyring.open(blueprint, sealedColumn(key, 'blueprint'))), registry)),
    generated: readable
      ? generatedSchema.parse(JSON.parse(keyring.open(generated, sealedColumn(key, 'generated'))))
      : {},
  }
}

/** A worker that has a run holds its row: whoever skips locked rows does not see it. */
async function isLocked(db: Db, id: string): Promise<boolean> {
  const free = await db.query(sql`SELECT 1 FROM runs WHERE id = ${id} FOR KEY SHARE SKIP LOCKED`)
  return free.length === 0
}
