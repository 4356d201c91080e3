import {
  defineMappingTag,
  defineScalarTag,
  defineSequenceTag,
  type Event,
  floatCoreTag,
  intCoreTag,
  NOT_RESOLVED,
  type TagDefinition,
} from 'js-yaml'
import { isKept, notKept } from '../numbers.ts'
import { Find, KeyOf } from './document.ts'
import { type LineColumn, number } from './nodes.ts'

/**
 * The tags of a blueprint, as the parser reads and the printer writes them. `evaluate.ts` gives their values
 * (docs/blueprints.md).
 */

export const expressionNames = [
  ...(['!Env', '!File', '!Context', '!Format', '!If', '!Condition'] as const),
  ...(['!Enumerate', '!Index', '!Value', '!AtIndex', '!Find'] as const),
] as const

/**
 * `!Unread` stands for an unknown tag, or for a number that is not kept, in a document of another service: it holds the reason.
 */
export type ExpressionName = (typeof expressionNames)[number] | '!Unread'

/** A tag with its content, a text or a list, which stands for a value. */
export class Expression {
  readonly name: ExpressionName
  readonly content: string | readonly unknown[]
  /** The offset of the tag in the text of the document. It is no part of the value: equal documents may differ in it. */
  readonly #offset: number | undefined

  constructor(name: ExpressionName, content: string | readonly unknown[], offset?: number) {
    this.name = name
    this.content = content
    this.#offset = offset
  }

  get offset(): number | undefined {
    return this.#offset
  }

  with(content: string | readonly unknown[]): Expression {
    return new Expression(this.name, content, this.#offset)
  }

  toJSON(): unknown {
    return { [this.name]: this.content }
  }
}

/** An error of a tag that has no value, or of a document that is too large once its tags have values. */
export class TagError extends Error {
  override readonly name = 'TagError'
  readonly offset: number | undefined
  /** Set where the text is known. */
  place: LineColumn | undefined
  constructor(tag: (Partial<Pick<Expression, 'name'>> & Pick<Expression, 'offset'>) | undefined, why: string) {
    super(tag?.name === undefined ? why : `${tag.name}: ${why}`)
    this.offset = tag?.offset
  }
}

/** The error of a forbidden name, in the text, or made by a tag. */
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

/** Replaces each `!KeyOf` and `!Find` in a value, from inside to outside. */
export function replaceLookups(value: unknown, replace: (tag: KeyOf | Find) => unknown): unknown {
  const inside = (inner: unknown) => replaceLookups(inner, replace)
  const fields = (all: object) => Object.fromEntries(Object.entries(all).map(([name, each]) => [name, inside(each)]))
  if (value instanceof KeyOf) return replace(value)
  if (value instanceof Find) return replace(new Find(value.model, fields(value.identifiers)))
  if (value instanceof Expression)
    return typeof value.content === 'string' ? value : value.with(value.content.map(inside))
  if (Array.isArray(value)) return value.map(inside)
  return typeof value === 'object' && value !== null ? fields(value) : value
}

const keyOfTag = defineScalarTag<KeyOf>('!KeyOf', {
  resolve: (source) => (source === '' ? NOT_RESOLVED : new KeyOf(source)),
  identify: (value) => value instanceof KeyOf,
  represent: (value: KeyOf) => value.id,
})

/**
 * The definitions for one text. The parser calls them in the order of the events, one call for each tag: that gives a tag its
 * place.
 */
export function parsedTags(events: readonly Event[], text: string): readonly TagDefinition[] {
  const nextOffset = offsetsOf(events, text, (name) => expressionNames.some((each) => each === name))
  return nextOffset === undefined
    ? [keyOfTag]
    : [keyOfTag, ...expressionNames.flatMap((name) => expressionTags(name, nextOffset))]
}

/** @returns a function that gives the offsets of such tags, one after the other; undefined when there are none */
function offsetsOf(events: readonly Event[], text: string, isIt: (name: string) => boolean) {
  const offsets: number[] = []
  for (const event of events) {
    if (!('tagStart' in event) || event.tagStart < 0) continue
    if (isIt(text.slice(event.tagStart, Math.min(event.tagEnd, event.tagStart + longestName))))
      offsets.push(event.tagStart)
  }
  const next = offsets.values()
  return offsets.length === 0 ? undefined : () => next.next().value
}

const longestName = 20

/**
 * The definitions for other tags in a text of another service: they are read, and have no value.
 *
 * @param unkept the offsets of numbers that are not kept
 */
export function unreadTags(
  events: readonly Event[],
  text: string,
  unkept: readonly number[],
): readonly TagDefinition[] {
  const isKnown = (name: string) =>
    /^!(KeyOf|!(str|int|float|bool|null|seq|map))?$/.test(name) || expressionNames.some((each) => each === name)
  const nextTag = offsetsOf(events, text, (name) => !isKnown(name))
  const nextNumber = unkept.values()
  const unknown = (name: string) => new Expression('!Unread', `The tag ${name} is unknown here.`, nextTag?.() ?? 0)
  const ofAnyName = { matchByTagPrefix: true, identify: () => false }
  const numbers = [intCoreTag, floatCoreTag].map((tag) => ({
    ...tag,
    resolve: (source: string, ...more: [boolean, string]) =>
      number.test(source) && !isKept(source)
        ? new Expression('!Unread', notKept, nextNumber.next().value ?? 0)
        : tag.resolve(source, ...more),
  }))
  return [
    ...numbers,
    defineScalarTag('', { ...ofAnyName, resolve: (_, __, name) => unknown(name) }),
    defineSequenceTag('', { ...ofAnyName, create: unknown, addItem: () => undefined }),
    defineMappingTag('', {
      ...ofAnyName,
      create: unknown,
      addPair: () => '',
      has: () => false,
      keys: () => [],
      get: () => undefined,
    }),
  ]
}

type Carrier = { readonly offset: number | undefined; readonly items: unknown[] }

/** The definitions of a tag before a text, and before a list. */
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
