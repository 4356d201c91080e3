import { digestKey } from '../apply/audit.ts'
import { isOutsideWithProvider, recordedTables } from '../apply/outside.ts'
import { queryBoolean } from '../http/query.ts'
import type { Engine } from '../plan/engine.ts'
import { isAmong, narrows } from './filters.ts'

/** The most applications that are compared with their last recorded change: one takes a tenth of a millisecond. */
const mostCompared = 500

/**
 * Whether a worker has looked for such changes at all: then only those that it found, and those that were written since, may be
 * outside. It is false in a database that was restored into another server, whose transactions have numbers of their own.
 */
const hasLooked = `(SELECT i.outside_after > 0 AND i.outside_after < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
  FROM installation i WHERE EXISTS (SELECT FROM applications OFFSET ${mostCompared}))`

/**
 * Whether the transaction that wrote the row was still open when the worker looked. Those with a negative age are billions ago.
 */
const isWrittenSince = (row: string): string =>
  `age(${row}.xmin) BETWEEN 0 AND (SELECT age(i.outside_after::text::xid8::xid) FROM installation i)`

/** The keys of all applications that may have changed outside, once a worker has looked. @param models placeholders */
function suspects(models: Readonly<Record<'applications' | 'providers', string>>): string {
  const found = (of: keyof typeof models, type: string) =>
    `SELECT c.key::${type} FROM outside_changes c WHERE NOT c.is_deleted AND c.model = ANY (${models[of]}::text[])`
  return `SELECT a.pk FROM applications a WHERE ${isWrittenSince('a')}
    UNION SELECT b.application_pk FROM backchannel_providers b WHERE ${isWrittenSince('b')}
    UNION SELECT a.pk FROM applications a WHERE a.provider_pk IN (
      SELECT p.pk FROM providers p WHERE ${isWrittenSince('p')} UNION ALL ${found('providers', 'integer')})
    UNION ${found('applications', 'uuid')}`
}

/**
 * Applications that differ from their last recorded change, or whose provider does
 * (docs/adr/0099-what-is-outside-is-compared-since-a-look.md).
 */
export function changedOutside({ registry, keyring }: Pick<Engine, 'registry' | 'keyring'>) {
  const modelsOf = (table: string) => recordedTables(registry).find((each) => each.table === table)?.models ?? []
  const description =
    'True: changed past the service, by SQL for instance, or with a provider that was, since their last recorded change. False: all others, those too of which that is not known.'
  return narrows<'pk', boolean>('pk', queryBoolean.meta({ description }), (pk, value, bind) => {
    const models = { applications: bind(modelsOf('applications')), providers: bind(modelsOf('providers')) }
    const compared = isOutsideWithProvider('applications', { ...models, key: bind(digestKey(keyring)) })
    const found = `CASE WHEN ${hasLooked} AND NOT ${isAmong(pk, suspects(models))} THEN false ELSE ${compared} END`
    return `(${found}) IS ${value ? '' : 'NOT '}TRUE`
  })
}
