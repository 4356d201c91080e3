import { digestKey } from '../apply/audit.ts'
import { isOutsideWithProvider, recordedTables } from '../apply/outside.ts'
import { queryBoolean } from '../http/query.ts'
import type { Engine } from '../plan/engine.ts'
import { narrows } from './filters.ts'

/** Applications that are not as their last recorded change left them, or whose provider is not. */
export function changedOutside({ registry, keyring }: Pick<Engine, 'registry' | 'keyring'>) {
  const modelsOf = (table: string) => recordedTables(registry).find((each) => each.table === table)?.models ?? []
  const description =
    'True: changed past the service, by SQL for instance, or with a provider that was, since their last recorded change. False: all others, those too of which that is not known.'
  return narrows<'pk', boolean>('pk', queryBoolean.meta({ description }), (_, value, bind) => {
    const [applications, providers] = [bind(modelsOf('applications')), bind(modelsOf('providers'))]
    const found = isOutsideWithProvider('applications', { applications, providers, key: bind(digestKey(keyring)) })
    return `${found} IS ${value ? '' : 'NOT '}TRUE`
  })
}

/** Those that a worker found when it last looked. To look at each of many now takes longer than a page may. */
export function foundOutside({ registry }: Pick<Engine, 'registry'>) {
  const modelsOf = (table: string) => recordedTables(registry).find((each) => each.table === table)?.models ?? []
  return narrows<'pk', boolean>('pk', queryBoolean, (pk, _, bind) => {
    const of = (table: string) =>
      `FROM outside_changes c WHERE NOT c.is_deleted AND c.model = ANY (${bind(modelsOf(table))}::text[])`
    return `${pk} = ANY (ARRAY(SELECT c.key::uuid ${of('applications')}
      UNION SELECT a.pk FROM applications a WHERE a.provider_pk IN (SELECT c.key::integer ${of('providers')})))`
  })
}
