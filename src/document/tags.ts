import { defineScalarTag, defineSequenceTag, type Event, NOT_RESOLVED, type TagDefinition } from 'js-yaml'
import { Find, KeyOf } from './document.ts'

/**
 * The tags of a blueprint, as the parser reads and the printer writes them. `evaluate.ts` says what they stand for
 * (docs/blueprints.md).
 */

export const expressionNames = [
  ...(['!Env', '!File', '!Context', '!Format', '!If', '!Condition'] as const),
  ...(['!Enumerate', '!Index', '!Value', '!AtIndex', '!Find'] as const),
] as const

export type ExpressionName = (typeof expressionNames)[number]

/** A tag that stands for a value, with what stands behind it: a text, or a list. */
export class Expression {
  readonly name: ExpressionName
  readonly content: string | readonly unknown[]
  /** Of the tag in the text of the document. It is no part of the value: equal documents may differ in it. */
  readonly #offset: number | undefined

  constructor(name: ExpressionName, content: string | readonly unknown[], offset?: number) {
    this.name = name
    this.content = content
    this.#offset = offset
  }

  get offset(): number | undefined {
    return this.#offset
  }

  /** The same tag with other content. */
  with(content: string | readonly unknown[]): Expression {
    return new Expression(this.name, content, this.#offset)
  }

  /** In messages and logs. */
  toJSON(): unknown {
    return { [this.name]: this.content }
  }
}

/** Line and column, from 1. */
export type Place = { readonly line: number; readonly column: number }

/** A tag that has no value, or a document that is too large once its tags have theirs. */
export class TagError extends Error {
  override readonly name = 'TagError'
  readonly offset: number | undefined
  /** Set where the text is known. */
  place: Place | undefined
  constructor(tag: Pick<Expression, 'name' | 'offset'> | undefined, why: string) {
    super(tag === undefined ? why : `${tag.name}: ${why}`)
    this.offset = tag?.offset
  }
}

/** In the text, or made by a tag. */
export class ForbiddenName extends TagError {
  constructor() {
    super(undefined, 'holds a field with the name __proto__: no field may have this name')
  }
}

export const isTag = (value: unknown): value is KeyOf | Find | Expression =>
  value instanceof KeyOf || value instanceof Find || value instanceof Expression

/** Whether a value is or holds a tag. Only for values that are known to be small enough: it follows every reference. */
export const holdsTag = (value: unknown): boolean =>
  isTag(value) || (typeof value === 'object' && value !== null && Object.values(value).some(holdsTag))

const keyOfTag = defineScalarTag<KeyOf>('!KeyOf', {
  resolve: (source) => (source === '' ? NOT_RESOLVED : new KeyOf(source)),
  identify: (value) => value instanceof KeyOf,
  represent: (value: KeyOf) => value.id,
})

/**
 * The definitions for one text. The parser calls them in the order of the events, one call for each tag: that is how a
 * tag gets its place.
 */
export function parsedTags(events: readonly Event[], text: string): readonly TagDefinition[] {
  const offsets: number[] = []
  for (const event of events) {
    if (!('tagStart' in event) || event.tagStart < 0) continue
    const name = text.slice(event.tagStart, Math.min(event.tagEnd, event.tagStart + longestName))
    if (expressionNames.some((each) => each === name)) offsets.push(event.tagStart)
  }
  if (offsets.length === 0) return [keyOfTag]
  let next = 0
  const nextOffset = () => {
    next += 1
    return offsets[next - 1]
  }
  return [keyOfTag, ...expressionNames.flatMap((name) => expressionTags(name, nextOffset))]
}

const longestName = 20

type Carrier = { readonly offset: number | undefined; readonly items: unknown[] }

/** One that stands before a text, and one that stands before a list. */
const expressionTags = (name: ExpressionName, nextOffset = (): number | undefined => undefined): TagDefinition[] => [
  defineScalarTag<Expression>(name, {
    resolve: (source) => new Expression(name, source, nextOffset()),
    identify: (value) => value instanceof Expression && value.name === name && typeof value.content === 'string',
    represent: ({ content }: Expression) => String(content),
  }),
  defineSequenceTag<Carrier, Expression>(name, {
    create: () => ({ offset: nextOffset(), items: [] }),
    addItem: ({ items }, item) => {
      items.push(item)
    },
    finalize: ({ offset, items }) => new Expression(name, items, offset),
    identify: (value) =>
      value instanceof Find
        ? name === '!Find'
        : value instanceof Expression && value.name === name && typeof value.content !== 'string',
    represent: (value: Expression | Find) =>
      value instanceof Find ? [value.model, value.identifiers] : [...value.content],
  }),
]

export const printedTags: readonly TagDefinition[] = [
  keyOfTag,
  ...expressionNames.flatMap((name) => expressionTags(name)),
]
