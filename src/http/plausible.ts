import type { Db } from '../db/client.ts'
import { reader } from '../db/engine-tx.ts'
import { inTime } from '../db/in-time.ts'
import type { Keyring } from '../db/seal.ts'
import { sha256 } from '../ids.ts'
import { startsOfOthers } from '../rights/actor.ts'
import { isKeyed } from '../token-secret.ts'
import type { RefusalCounts } from './metrics.ts'

/** Judges tokens before they are looked up. */
export type Door = Pick<RefusalCounts, 'countFailedLogin'> & {
  /** Whether a token may be valid. One that may not be costs no query. */
  readonly plausible: (secret: string) => Promise<boolean>
}

const readAgainMs = 1_000

/**
 * A token that was made under SECRET_KEY carries the proof (docs/adr/0103-tokens-carry-a-keyed-checksum.md). The start of the
 * digest of each other one that is still valid is kept in memory. A token that is not among them may be newer: they are read
 * again then, once a second at most, and never when none is left. So a flood of forged tokens makes no valid one be refused.
 */
export function plausibleTokens(db: Db, keyring: Keyring, againMs = readAgainMs): Door['plausible'] {
  let others: ReadonlySet<number> | undefined
  let reading: Promise<void> | undefined
  let readAt = Number.NEGATIVE_INFINITY

  async function read(): Promise<void> {
    const starts = await inTime(startsOfOthers(reader(db), keyring.ids))
    readAt = performance.now()
    others = new Set(Array.from({ length: starts.length / 4 }, (_, index) => starts.readUInt32BE(index * 4)))
  }

  return async (secret) => {
    if (isKeyed(secret, keyring)) return true
    const start = sha256(secret).readUInt32BE()
    const isKnown = () => others?.has(start) === true
    if (isKnown() || others?.size === 0) return isKnown()
    if (performance.now() - readAt >= againMs) {
      reading ??= read().finally(() => {
        reading = undefined
      })
      await reading
    }
    return isKnown()
  }
}
