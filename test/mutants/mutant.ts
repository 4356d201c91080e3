/** One line of the product, written wrongly on purpose: the tests must notice. */
export type Mutant = {
  /** The part of one line of the room's file that is replaced. It stands there once. */
  readonly from: string
  readonly to: string
  /** What is broken, as a reader would say it. */
  readonly why: string
  /** The test files that notice, the quickest first. */
  readonly tests: readonly string[]
  /** Why no test notices, or need notice; the run fails when one does. */
  readonly survives?: string
}

/** Of one file of the product, by its path. */
export type MutantsOf = Readonly<Record<string, readonly Mutant[]>>

/** A mutant with its file and the list that has it. */
export type Placed = Mutant & { readonly room: string; readonly file: string }

/** @throws when the mutant does not apply to exactly one line, or changes nothing */
export function mutate(text: string, { from, to, file }: Pick<Placed, 'from' | 'to' | 'file'>): string {
  const parts = text.split(from)
  if (from.includes('\n') || to.includes('\n')) throw new Error(`${file}: a mutant is one line: ${from}`)
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times, instead of once: ${from}`)
  if (from === to) throw new Error(`${file}: the mutant changes nothing: ${from}`)
  return parts.join(to)
}
