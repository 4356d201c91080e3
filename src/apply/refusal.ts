import type { ErrorList, FieldPath } from '../errors.ts'
import { own } from '../json-object.ts'
import { type Actor, allows } from '../permissions.ts'
import type { Conditions } from '../plan/engine.ts'
import { type Finding, isOwn, verbOf } from '../plan/inspect.ts'

/** Why a document was not applied, as the submitter can read and fix it. Rolls the transaction back. */
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

/** @returns each error as a line of the log */
export const errorLines = ({ list, unlisted }: ErrorList): string[] => [
  ...list.map(({ path, message }) => `rolled back: ${inPath(path)}${message}`),
  ...(unlisted === undefined ? [] : [`rolled back: ${unlisted}`]),
]

const inPath = (path: FieldPath) => (path.length > 0 ? `${path.join('.')}: ` : '')

/** A row in messages: `flow "login"`. */
export const rowName = ({ step, label }: Finding): string => `${step.model.displayName} ${JSON.stringify(label)}`

/**
 * The API and the worker deny in the same words. For an actor without any permission for rows of the model, the text is the
 * same whether the row exists or not: it has no verb and no stored name.
 *
 * @param who `You`, or the user name
 */
export function denied(who: string, actor: Actor, finding: Finding, why: string): string {
  const { model, identifiers, attrs } = finding.step
  const verbs = ['view', 'add', 'change', 'delete'] as const
  const knows = isOwn(actor, finding) || verbs.some((verb) => allows(actor, `${verb}_${model.resource}`))
  if (knows) return `${who} may not ${verbOf(finding)} ${rowName(finding)}: ${why}`
  const [[field = 'pk'] = []] = model.identifiers
  const sent = attrs.get(field) ?? identifiers.get(field) ?? identifiers.values().next().value
  const missing = `add_${model.resource}, change_${model.resource} or delete_${model.resource}`
  return `${who} may not write ${model.displayName} ${JSON.stringify(sent)}: the permission ${missing} is missing`
}

export const alreadyExists = (finding: Finding): string =>
  `${rowName(finding)} is there already, and If-None-Match: * allows only to create`

/** Adds an error when the row has another key than the submission expects. */
export function addKeyError(finding: Finding, { expectedKeys }: Conditions): void {
  const { step, row, errors } = finding
  const expected = own(expectedKeys, step.id)
  if (expected === undefined || expected === row?.pk) return
  const actual = row === undefined ? 'is not there yet' : `has the key ${row.pk}`
  errors.add(
    [...(step.path.at(-1) === 'provider' ? step.path.slice(0, -1) : []), 'app', 'provider'],
    'wrong_reference',
    `The submission's ${rowName(finding)} ${actual}: leave this field out, or send its key.`,
  )
}

/** Why a rename goes wrong, before all other errors, which follow from it; null when it does not. */
export const bothThere = (finding: Finding): string | null =>
  finding.step.rename === 'both'
    ? `${rowName(finding)} and ${finding.step.model.displayName} ${JSON.stringify(finding.step.was)} are both there, so that was renames nothing: leave was out, or delete one of them`
    : null
