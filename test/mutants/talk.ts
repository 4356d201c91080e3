import type { Mutant } from './generate.ts'

/** A question without a mutant asks for the tests of the code as it is. */
export type Question = { readonly mutant?: Mutant; readonly tests: readonly string[] }

/** The first test that failed: its file, and how. */
export type Failure = { readonly file: string; readonly how: string }

/** `failure`: null when all tests passed. `error`: the question cannot be answered. */
export type Answer = { readonly failure: Failure | null } | { readonly error: string }
