/** The exit codes of the program. The numbers are part of its interface. */
export const exitCodes = { done: 0, refused: 1, changes: 2, unknown: 3, interrupted: 130, terminated: 143 } as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

export const exitCodeHelp = `Exit codes: 0 done or nothing to do, 1 refused, 2 changes (plan), 3 unreachable or unknown,
130 interrupted (SIGINT), 143 ended (SIGTERM).
`

/** An error that the caller can fix: the message is printed without a stack, and the program ends with `refused`. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The service did not answer, or another program did: the program ends with `unknown`. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
}
