import type { ServiceConfig } from '../config.ts'
import { keyring } from '../db/seal.ts'
import { setOperatorRules } from '../models/operator-rules.ts'
import { isPublicSuffix, isRegistrable } from '../models/public-suffix.ts'
import { loadRegistry } from '../models/registry.ts'
import type { Engine } from './engine.ts'

type Settings = Pick<ServiceConfig, 'secretKey' | 'secretKeyPrevious' | 'tokenMaxDays'> & {
  readonly launchSchemes: readonly string[]
  readonly redirectParentDomains: readonly string[]
}

/** The engine of a process, by the settings of its operator. */
export async function openEngine(config: Settings): Promise<Engine> {
  const { launchSchemes, redirectParentDomains } = config
  const isListed = (domain: string) =>
    redirectParentDomains.some((parent) => domain === parent || domain.endsWith(`.${parent}`))
  setOperatorRules({
    launchSchemes,
    isParentDomain: (domain) => isListed(domain) || isRegistrable(domain),
    isPublicSuffix,
  })
  return {
    registry: await loadRegistry(),
    keyring: keyring(config.secretKey, config.secretKeyPrevious),
    tokenMaxDays: config.tokenMaxDays,
  }
}
