import { type ApplyResult, apply, type Conditions } from '../../src/blueprint/apply.ts'
import { check } from '../../src/blueprint/check.ts'
import { compile } from '../../src/blueprint/compile.ts'
import type { Entry } from '../../src/blueprint/document.ts'
import type { Engine } from '../../src/blueprint/inspect.ts'
import { Refusal } from '../../src/blueprint/refusal.ts'
import { bootstrap } from '../../src/bootstrap.ts'
import { type Db, transaction } from '../../src/db/client.ts'
import { type Actor, system } from '../../src/permissions.ts'
import { freshDatabase } from '../support/database.ts'
import { adminToken, loadEngine } from '../support/engine.ts'

/** The blueprint engine on a bootstrapped database, without API, queue or run. */
export type Bench = {
  readonly db: Db
  readonly url: string
  readonly engine: Engine
  /** Applies entries in one transaction, as the worker does. */
  apply(entries: readonly Partial<Entry>[], as?: Actor, conditions?: Partial<Conditions>): Promise<ApplyResult>
  /** @returns the logs of the refusal; @throws when it was not refused */
  refusal(entries: readonly Partial<Entry>[], as?: Actor, conditions?: Partial<Conditions>): Promise<Refusal>
  /** Asks what the API asks before it queues. */
  check(entries: readonly Partial<Entry>[], as?: Actor, conditions?: Partial<Conditions>): ReturnType<typeof check>
}

export async function bench(): Promise<Bench> {
  const { db, url } = await freshDatabase()
  const engine = await loadEngine()
  await bootstrap(db, engine, adminToken)
  const planOf = (entries: readonly Partial<Entry>[]) =>
    compile({ version: 1, metadata: { name: 'test' }, entries: entries.map(whole) }, engine.registry)
  const all = { createOnly: false, expectedKeys: {} }

  const applyEntries: Bench['apply'] = (entries, as = system, conditions = {}) =>
    transaction(db, (tx) => apply(tx, engine, planOf(entries), as, { ...all, ...conditions }))
  return {
    ...{ db, url, engine },
    apply: applyEntries,
    refusal: async (entries, as, conditions) => {
      const outcome = await applyEntries(entries, as, conditions).catch((error: unknown) => error)
      if (outcome instanceof Refusal) return outcome
      throw new Error(`not refused: ${JSON.stringify(outcome)}`, { cause: outcome })
    },
    check: (entries, as = system, conditions = {}) => check(db, engine, planOf(entries), as, { ...all, ...conditions }),
  }
}

const whole = (entry: Partial<Entry>): Entry => ({
  model: 'service_flows.flow',
  state: 'present',
  identifiers: {},
  attrs: {},
  ...entry,
})

/** Rows of the bootstrap blueprint, by its fixed keys. */
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
  attrs: { url: 'https://example.com/scim', token: 'scim-token', ...attrs },
})
