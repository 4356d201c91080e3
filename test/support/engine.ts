import { keyring } from '../../src/db/seal.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import type { Engine } from '../../src/plan/engine.ts'

export const secretKey = 'a secret key for tests, 32 or more'
/** The token of the first admin, where the database was bootstrapped with it. */
export const adminToken = 'the-token-of-the-first-admin'

export const testKeys = keyring(secretKey)

export const loadEngine = async (): Promise<Engine> => ({
  registry: await loadRegistry(),
  keyring: testKeys,
  tokenMaxDays: 365,
})
