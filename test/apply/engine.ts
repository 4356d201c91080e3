import { expect, inject } from 'vitest'
import { type ApplyResult, apply } from '../../src/apply/apply.ts'
import { check } from '../../src/apply/check.ts'
import { Refusal } from '../../src/apply/refusal.ts'
import type { Db } from '../../src/db/client.ts'
import { type EngineReader, type EngineTransaction, prismaTransaction, reader } from '../../src/db/engine-tx.ts'
import { pipelinedTransaction } from '../../src/db/pipeline.ts'
import type { Statement } from '../../src/db/raw.ts'
import type { Entry } from '../../src/document/document.ts'
import { type Actor, system } from '../../src/permissions.ts'
import { compile } from '../../src/plan/compile.ts'
import { type Conditions, type Engine, nothingAllowed, unconditional } from '../../src/plan/engine.ts'
import { freshDatabase } from '../support/database.ts'
import { loadEngine } from '../support/engine.ts'

/** The blueprint engine on a bootstrapped database, without API, queue or run. */
export type Bench = {
  readonly db: Db
  readonly url: string
  readonly engine: Engine
  /** Runs engine work in one transaction. */
  readonly transaction: EngineTransaction
  /** Applies entries in one transaction, as the worker does. */
  apply(entries: readonly Partial<Entry>[], as?: Actor, conditions?: Partial<Conditions>): Promise<ApplyResult>
  /** @returns the refusal; @throws when the apply was not refused */
  refusal(entries: readonly Partial<Entry>[], as?: Actor, conditions?: Partial<Conditions>): Promise<Refusal>
  /** Checks entries as the API does before it enqueues. */
  check(entries: readonly Partial<Entry>[], as?: Actor, conditions?: Partial<Conditions>): ReturnType<typeof check>
}

/** @param rewrite of each statement that reads */
export async function bench(rewrite: (statement: Statement) => Statement = (same) => same): Promise<Bench> {
  const { db, url, service } = await freshDatabase({ isInstalled: true })
  // Both implementations of the engine's transactions: vitest.config.ts has a project for each.
  const transaction =
    inject('transactions') === 'pipelined' ? pipelinedTransaction(service.pool) : prismaTransaction(service.db)
  const engine = await loadEngine()
  const planOf = (entries: readonly Partial<Entry>[]) =>
    compile({ version: 1, metadata: { name: 'test' }, entries: entries.map(whole) }, engine.registry)

  const rewritten = ({ query, attempt }: EngineReader): EngineReader => ({
    query: (row, statement) => query(row, rewrite(statement)),
    attempt,
  })

  const applyEntries: Bench['apply'] = (entries, as = system, conditions = {}) =>
    transaction((tx) =>
      apply({ ...tx, ...rewritten(tx) }, engine, planOf(entries), as, { ...accepting, ...conditions }),
    )
  return {
    db,
    url,
    engine,
    transaction,
    apply: applyEntries,
    refusal: async (entries, as, conditions) => {
      const outcome = await applyEntries(entries, as, conditions).catch((error: unknown) => error)
      if (outcome instanceof Refusal) return outcome
      throw new Error(`not refused: ${JSON.stringify(outcome)}`, { cause: outcome })
    },
    check: (entries, as = system, conditions = {}) =>
      check(rewritten(reader(service.db)), engine, planOf(entries), as, { ...accepting, ...conditions }),
  }
}

/** Tests of rights give them to groups with members: `conflicts.test.ts` is about those who did not expect it. */
const accepting: Conditions = { ...unconditional, allow: { ...nothingAllowed, grants: true } }

/** The same, with nothing acknowledged, unless a call does so. */
export const acceptingNothing = (there: Bench): Bench => ({
  ...there,
  apply: (entries, as, conditions) => there.apply(entries, as, { allow: nothingAllowed, ...conditions }),
  refusal: (entries, as, conditions) => there.refusal(entries, as, { allow: nothingAllowed, ...conditions }),
  check: (entries, as, conditions) => there.check(entries, as, { allow: nothingAllowed, ...conditions }),
})

/** The error that check and apply both report for the last entry, at this path. */
export const refusing =
  (there: Bench) =>
  async (entries: readonly Partial<Entry>[], at: string, as?: Actor): Promise<string> => {
    const { logs, reason } = await there.refusal(entries, as)
    expect([reason, logs]).toEqual(['invalid', [expect.any(String)]])
    const [, message = ''] = logs[0]?.split(`rolled back: entries.${entries.length - 1}.${at}: `) ?? []
    const checked = there.check(entries, as).then(
      () => 'accepted',
      (problem: { fields: object }) => JSON.stringify(problem.fields),
    )
    expect(await checked).toContain(JSON.stringify([message]))
    return message
  }

const whole = (entry: Partial<Entry>): Entry => ({
  model: 'service_flows.flow',
  state: 'present',
  identifiers: {},
  attrs: {},
  ...entry,
})

/** Keys of rows of the bootstrap blueprint. */
export const shipped = {
  flow: '6f7e0000-0000-4000-8000-000000000102',
  mappings: [
    '6f7e0000-0000-4000-8000-000000000201',
    '6f7e0000-0000-4000-8000-000000000202',
    '6f7e0000-0000-4000-8000-000000000203',
  ],
  keyPair: '6f7e0000-0000-4000-8000-000000000301',
  group: '6f7e0000-0000-4000-8000-000000000502',
} as const

export const flow = (slug: string, attrs: Record<string, unknown> = {}): Partial<Entry> => ({
  identifiers: { slug },
  attrs: { name: `Flow ${slug}`, designation: 'authorization', ...attrs },
})

export const application = (slug: string, attrs: Record<string, unknown> = {}): Partial<Entry> => ({
  model: 'service_core.application',
  identifiers: { slug },
  attrs: { name: `Application ${slug}`, ...attrs },
})

export const oauth2 = (name: string, attrs: Record<string, unknown> = {}): Partial<Entry> => ({
  model: 'service_providers_oauth2.oauth2provider',
  identifiers: { name },
  attrs: { authorization_flow: shipped.flow, ...attrs },
})

export const scim = (name: string, attrs: Record<string, unknown> = {}): Partial<Entry> => ({
  model: 'service_providers_scim.scimprovider',
  identifiers: { name },
  attrs: { url: 'https://example.com/scim', token: 'a token of many letters', ...attrs },
})
