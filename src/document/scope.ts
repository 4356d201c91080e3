import { documentLimits, type Find, type KeyOf } from './document.ts'
import { type Sizes, taggedIn } from './measure.ts'
import { type Expression, TagError } from './tags.ts'

/** The context of a value for `evaluate.ts`, and the limits of its work. */

/** The key of a row, while the tags around it are evaluated. */
export class KeyValue {
  readonly key: string | number
  /** The tag that found it. */
  readonly tag: KeyOf | Find
  constructor(key: string | number, tag: KeyOf | Find) {
    this.key = key
    this.tag = tag
  }
}

/** The item at which an `!Enumerate` is now. `undefined` while its own list is evaluated. */
export type Frame = { readonly index: string | number; readonly value: unknown } | undefined

/** A question of a tag to the database. `asks`: it only asks whether there is such a row, so that none is no error. */
export type Lookup = { readonly tag: KeyOf | Find; readonly asks: boolean }

export type Evaluation = Generator<Lookup, unknown, unknown>

/** The errors of tags in one document. A tag with an error has no value, and the rest is evaluated. */
export class TagErrors {
  readonly list: TagError[] = []
  /** The number of times that a tag had no value: one of the context may be evaluated several times. */
  count = 0
  readonly #seen = new Set<string>()

  add(error: TagError): void {
    this.count += 1
    const place = `${error.offset} ${error.message}`
    if (!this.#seen.has(place)) this.list.push(error)
    this.#seen.add(place)
  }
}

/** The side of the caller: its variables and files. */
export type Caller = {
  /** Takes the errors of tags. Absent: the first one is thrown. */
  readonly errors?: TagErrors
  /** @returns undefined when there is none. `keep`: the tags stay as they are */
  readonly read: ((tag: Expression, name: string) => string | undefined) | 'keep'
  /** `--context`, which takes precedence over the context of the document. */
  readonly context: { get(name: string): string | number | boolean | undefined }
}

/** `refuse`: the service has neither the variables nor the files of the caller. */
export type CallerSide = Caller | 'refuse'

export type Scope = {
  readonly context: Readonly<Record<string, unknown>>
  readonly caller: CallerSide
  /** The lists and mappings that hold tags: all others are taken as they are. */
  readonly tagged: ReadonlySet<object>
  /** The frames of the `!Enumerate` around the value, the innermost first. */
  readonly frames: readonly Frame[]
  /** Names of the context that are being evaluated. */
  readonly within: ReadonlySet<string>
  /** Whether only the truth of the value counts. */
  readonly asks: boolean
  /** The work so far: the same object for all parts of a document. */
  readonly done: { steps: number; letters: number; depth: number }
}

export const scopeOf = (
  value: unknown,
  context: Readonly<Record<string, unknown>> = {},
  caller: CallerSide = 'refuse',
  sizes?: Sizes,
): Scope => ({
  context,
  caller,
  tagged: taggedIn([value, context], sizes),
  frames: [],
  within: new Set(),
  asks: false,
  done: { steps: 0, letters: 0, depth: 0 },
})

/** The most lists, mappings and tags that are evaluated. Each counts each time. */
const maxSteps = 2 * documentLimits.nodes + 4 * documentLimits.expanded
/** Tags may nest deeper than their values. */
export const maxDepth = 4 * documentLimits.depth

export function count({ done }: Scope, steps: number): void {
  done.steps += steps
  if (done.steps > maxSteps) throw new TagError(undefined, `takes more than ${maxSteps} steps to evaluate its tags`)
}

/** The items of a tag that takes a list. @throws {TagError} when there are too few or too many */
export function itemsOf(
  tag: Expression,
  usage: string,
  min: number,
  max = Number.POSITIVE_INFINITY,
): readonly unknown[] {
  const { content } = tag
  if (typeof content === 'string' || content.length < min || content.length > max) throw new TagError(tag, usage)
  return content
}
