import { ErrorList, maxErrors, Problem } from '../errors.ts'
import { sentence } from '../messages.ts'
import { type Objection, precedence, type Reason, reasonOf } from './finding.ts'
import { hintsOf, maxListed, textsOf } from './words.ts'

/** The refusal of a document, with reasons that the submitter can read and fix. It rolls the transaction back. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly reason: Reason
  /** All objections with this reason. */
  readonly objections: readonly Objection[]

  /** @param objections one at least; those with the first reason in `precedence` are reported */
  constructor(objections: readonly Objection[], cause?: unknown) {
    const reasons = new Set(objections.map(reasonOf))
    const reason = precedence.find((each) => reasons.has(each)) ?? 'conflict'
    const reported = merged(objections.filter((each) => reasonOf(each) === reason))
    super(reported.flatMap((each) => textsOf(each)).join('; '), { cause })
    this.reason = reason
    this.objections = reported
  }

  /** The lines of the run's log. `rolled back` stands once, first; each reason is a line of its own. */
  get logs(): string[] {
    const [texts, more] = this.#texts()
    const [text = '', ...others] = texts
    return [
      ...(others.length === 0 ? [`rolled back: ${text}`] : ['rolled back, for these reasons:', ...texts]),
      ...(more > 0 ? [`${more} more ${this.#verb}.`] : []),
      ...hintsOf(this.objections),
    ]
  }

  /** The answer to the request. */
  get problem(): Problem {
    const [first, ...others] = this.objections
    if (first?.is === 'invalid' && others.length === 0) return first.errors.problem('The input is not valid.')
    const [texts, more] = this.#texts('You')
    const sentences = [...texts, ...hintsOf(this.objections)].map(sentence)
    return new Problem(this.reason, [...sentences, ...(more > 0 ? [`${more} more ${this.#verb}.`] : [])].join(' '), {
      cause: this.cause,
    })
  }

  get #verb(): string {
    return this.objections[0]?.is === 'changed' ? 'changed after the plan' : 'are not listed'
  }

  /** The sentences. A denial, or a row that exists already, stands alone: the others follow from the same mistake. */
  #texts(who?: string): [string[], number] {
    const isOne = this.reason === 'permission_denied' || this.objections[0]?.is === 'exists'
    const texts = (isOne ? this.objections.slice(0, 1) : this.objections).flatMap((each) => textsOf(each, who))
    // A list of errors counts those that it does not list.
    const most = this.reason === 'invalid' ? maxErrors + 1 : maxListed
    return [texts.slice(0, most), texts.length - most]
  }
}

/** The errors of all entries are one list, which has a limit. */
function merged(objections: readonly Objection[]): readonly Objection[] {
  const lists = objections.flatMap((each) => (each.is === 'invalid' ? [each.errors] : []))
  if (lists.length < objections.length) return objections
  return [{ is: 'invalid', errors: new ErrorList().include(lists) }]
}

/** Another transaction took a value, or a row that this one refers to, since the row was judged. Another try finds which. */
export class Overtaken extends Refusal {}

/** @throws {Refusal} when there is any objection */
export function refuseIfAny(objections: readonly Objection[]): void {
  if (objections.length > 0) throw new Refusal(objections)
}
