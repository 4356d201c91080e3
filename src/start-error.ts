/** A start that cannot go on, for a reason that the operator can mend: one sentence, no stack. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** The reason in the operating system's word: `EACCES`; else the message. */
export const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}

/** Shows what happens and how long it takes, while it happens. */
export type Report = <Result>(what: string, work: () => Promise<Result>) => Promise<Result>
