import type { Keyring } from '../db/seal.ts'
import type { Finding, Objection } from './finding.ts'

/** The comparison of an apply with the plan that was reviewed (docs/adr/0072-a-reviewed-plan-that-stands.md). */

/** The beginnings of digests of what follows, which stand behind those of the entries. */
const following = /^(gains|stacks) /

export class Review {
  readonly #digests: string[] = []
  readonly #following: string[] = []
  /** The entries with other changes than planned, as far as the document was compared. */
  readonly changed: Objection[] = []
  readonly #keyring: Keyring
  readonly #reviewed: readonly string[] | undefined
  #changesNothing = true

  /** @param reviewed the digests of the plan; undefined in a plan, whose digests are collected */
  constructor(keyring: Keyring, reviewed: readonly string[] | undefined) {
    this.#keyring = keyring
    this.#reviewed = reviewed
  }

  compare(finding: Finding): void {
    // An unchanged row that an entry takes is part of the digest of the entry.
    if (finding.cause === 'taken' && finding.change.action !== 'update') return
    this.#changesNothing &&= finding.change.action === 'unchanged'
    const digest = digestOfEntry(finding, this.#keyring)
    // Of what is left over, others may be gone since.
    const isPlanned =
      finding.cause === 'left' ? this.#reviewed?.includes(digest) : this.#reviewed?.[this.#digests.length] === digest
    if (this.#reviewed !== undefined && !isPlanned) this.changed.push({ is: 'changed', effect: finding })
    this.#digests.push(digest)
  }

  /** Compares the gained rights, or the rows that other stacks lose. It is not called for none, which is no reason to plan again. */
  compareFollowing(what: 'gains' | 'stacks', facts: string | null): void {
    this.#changesNothing = false
    const digest = `${what} ${facts}`
    if (this.#reviewed !== undefined && !this.#reviewed.includes(digest)) this.changed.push({ is: 'followed', what })
    this.#following.push(digest)
  }

  get planned(): readonly string[] {
    return [...this.#digests, ...this.#following]
  }

  /**
   * Whether the document was applied before: nothing is left to apply, though the plan had changes. It is known once the whole
   * document was compared.
   */
  get stands(): boolean {
    return this.#reviewed !== undefined && this.#changesNothing && (this.changed.length > 0 || this.#fewer > 0)
  }

  /** The objections, once the whole document was compared. */
  get objections(): readonly Objection[] {
    if (this.stands) return []
    return this.changed.length === 0 && this.#fewer > 0 ? [{ is: 'fewer', count: this.#fewer }] : this.changed
  }

  get #fewer(): number {
    const entries = this.#reviewed?.filter((digest) => !following.test(digest)) ?? []
    return entries.length - this.#digests.length
  }
}

/**
 * A digest of the row that an entry has read, and of its change. Secrets are part of it, so it is keyed.
 *
 * @returns 16 characters
 */
const digestOfEntry = ({ looked = null, change }: Finding, keyring: Keyring): string =>
  keyring
    .digest('plan', JSON.stringify([change, looked]))
    .toString('base64url')
    .slice(0, 16)
