import type { EngineReader } from '../db/engine-tx.ts'
import { isTrue } from '../document/evaluate.ts'
import { NotKnownYet } from '../document/scope.ts'
import { TagError } from '../document/tags.ts'
import type { Registry } from '../models/registry.ts'
import type { Step } from './compile.ts'
import { evaluateWith, type Keys } from './resolve.ts'
import { skippedLine } from './skipped.ts'

/** Conditions of entries that only the database can answer. All others are known when a document is read. */

/** @returns the step, with errors of its conditions; null when they are false */
export async function evaluateConditions(
  reader: EngineReader,
  registry: Registry,
  step: Step,
  keys: Keys,
): Promise<Step | null> {
  for (const condition of step.conditions?.all ?? []) {
    try {
      if (!isTrue(await evaluateWith(reader, registry, condition, keys, true))) return null
    } catch (error) {
      // What depends on a row that this document creates is true or not once it is applied.
      if (error instanceof NotKnownYet) continue
      if (!(error instanceof TagError)) throw error
      const path = [...step.path, 'conditions']
      return {
        ...step,
        nameErrors: [...(step.nameErrors ?? []), { path, code: 'invalid_value', message: error.message }],
      }
    }
  }
  return step
}

/** The line of the log. */
export const skippedStep = ({ conditions, model, identifiers }: Step): string =>
  skippedLine(conditions?.entry ?? 0, model.displayName, [...identifiers.values()])
