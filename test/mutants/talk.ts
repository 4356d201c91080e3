import type { Placed } from './mutant.ts'

/** Without a mutant: the tests of the code as it is. */
export type Question = { readonly mutant?: Placed; readonly tests: readonly string[] }

/** `failure`: the first test that failed, and how. `error`: the question cannot be answered. */
export type Answer = { readonly failure: string | null } | { readonly error: string }
