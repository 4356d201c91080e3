import { usualLaunchSchemes } from '../../src/config.ts'
import { keyring } from '../../src/db/seal.ts'
import type { Engine } from '../../src/plan/engine.ts'
import { openEngine } from '../../src/plan/open-engine.ts'

export const secretKey = 'a secret key for tests, 32 or more'
/** The token of the first admin, where the database was bootstrapped with it. */
export const adminToken = 'the-token-of-the-first-admin'

export const testKeys = keyring(secretKey)

export const loadEngine = (): Promise<Engine> =>
  openEngine({
    ...{ secretKey, secretKeyPrevious: null, tokenMaxDays: 365 },
    ...{ launchSchemes: usualLaunchSchemes, redirectParentDomains: ['corp.internal'] },
  })
