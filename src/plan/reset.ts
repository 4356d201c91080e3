import type { Field, Model } from '../models/define.ts'
import { byNames } from './rows-named.ts'
import type { Step } from './step.ts'

/**
 * `reset`: the fields that a document does not name go back to their defaults. They count as sent, so that all rules for sent
 * fields hold for them (docs/adr/0081-a-reset-sends-the-defaults.md).
 */

/**
 * A field whose default is no choice of a document stays as it is: a secret, a value that the service generates, a name,
 * and the members of a group.
 */
const isReset = (model: Model, { name, initial, secret, generate, reference }: Field): boolean =>
  initial !== undefined &&
  !secret &&
  generate === undefined &&
  reference?.target !== 'user' &&
  !model.identifiers.some((set) => set.includes(name))

/** Whether a model is configuration. Users are not, nor are their tokens, consents and devices. */
export const isConfiguration = ({ target, fields }: Model): boolean =>
  target !== 'user' && ![...fields.values()].some(({ required, reference }) => required && reference?.target === 'user')

type ResetFacts = {
  /** The fields that any entry names, those with conditions too. */
  readonly named: Set<string>
  /** The last entry that is present, without conditions. */
  last?: Step | undefined
  /** The entries with conditions. */
  readonly others: Step[]
}

/**
 * @returns the steps. The last step of a row that is present sends the defaults of the fields that no entry names; where only
 *   entries with conditions are present, each of them does
 */
export function withDefaults(steps: readonly Step[]): readonly Step[] {
  const rowOf = byNames((): ResetFacts => ({ named: new Set(), others: [] }))
  const entries = steps.map((step) => {
    const row = rowOf(step)
    for (const name of [...step.identifiers.keys(), ...step.attrs.keys()]) row.named.add(name)
    if (step.state === 'present' && step.conditions === undefined) row.last = step
    else if (step.state === 'present') row.others.push(step)
    return { step, row }
  })
  return entries.map(({ step, row: { last, others, named } }) => {
    const isLast = last === undefined ? others.includes(step) : last === step
    return isLast ? withDefaultsOf(step, named) : step
  })
}

function withDefaultsOf(step: Step, named: ReadonlySet<string>): Step {
  const { model, attrs } = step
  if (!isConfiguration(model)) return step
  const fields = [...model.fields.values()].filter((field) => !named.has(field.name) && isReset(model, field))
  if (fields.length === 0) return step
  return {
    ...step,
    attrs: new Map([...attrs, ...fields.map(({ name, initial }) => [name, initial] as const)]),
    reset: new Set(fields.map(({ name }) => name)),
  }
}

/** The entry without the defaults of fields that another entry of its row names. */
export const without = (step: Step, fields: readonly string[]): Step => ({
  ...step,
  attrs: new Map([...step.attrs].filter(([name]) => !fields.includes(name))),
})
