import { ErrorList, type FieldError, maxErrors, Problem } from '../errors.ts'
import { sentence } from '../messages.ts'
import { codeOf, type Objection, precedence, type Reason, reasonOf, stepOf } from './finding.ts'
import { hintsOf, maxListed, textsOf } from './words.ts'

/** The refusal of a document, with reasons that the submitter can read and fix. It rolls the transaction back. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly reason: Reason
  /** All objections with this reason. */
  readonly objections: readonly Objection[]
  /** The errors with their places in the document of the run, where they were searched. */
  placed: readonly FieldError[] | undefined

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

  get problem(): Problem {
    const [first, ...others] = this.objections
    if (first?.is === 'invalid' && others.length === 0) return first.errors.problem('The input is not valid.')
    const [texts, more] = this.#texts('You')
    const sentences = [...texts, ...hintsOf(this.objections)].map(sentence)
    const errors = this.errors('You')
    return new Problem(this.reason, [...sentences, ...(more > 0 ? [`${more} more ${this.#verb}.`] : [])].join(' '), {
      ...(errors.length > 0 && { errors }),
      cause: this.cause,
    })
  }

  /** The same sentences one by one, those about an entry, with its path. */
  errors(who?: string): FieldError[] {
    const found = this.#shown.flatMap((each): readonly FieldError[] => {
      if (each.is === 'invalid') return each.errors.list
      const path = stepOf(each)?.path ?? []
      if (path.length === 0) return []
      return [{ path, code: codeOf(each), message: sentence(textsOf(each, who).join('; ')) }]
    })
    return found.slice(0, this.reason === 'invalid' ? maxErrors : maxListed)
  }

  get #verb(): string {
    return this.objections[0]?.is === 'changed' ? 'changed after the plan' : 'are not listed'
  }

  /** A denial, or a row that exists already, stands alone: the others follow from the same mistake. */
  get #shown(): readonly Objection[] {
    const isOne = this.reason === 'permission_denied' || this.objections[0]?.is === 'exists'
    return isOne ? this.objections.slice(0, 1) : this.objections
  }

  #texts(who?: string): [string[], number] {
    const texts = this.#shown.flatMap((each) => textsOf(each, who))
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
