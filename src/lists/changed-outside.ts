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
