import type { Faults, FieldPath } from '../errors.ts'

/** Why a document was not applied: a fact that the submitter can read and mend. Rolls the transaction back. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly reason: 'invalid' | 'permission_denied' | 'precondition_failed' | 'conflict'
  readonly logs: readonly string[]
  constructor(reason: Refusal['reason'], logs: readonly string[], cause?: unknown) {
    super(logs.join('; '), { cause })
    this.reason = reason
    this.logs = logs
  }
}

/** Every fault as a line of the log. */
export const faultLines = (faults: Faults): string[] =>
  faults.list.map(({ path, message }) => `rolled back: ${inPath(path)}${message}`)

const inPath = (path: FieldPath) => (path.length > 0 ? `${path.join('.')}: ` : '')
