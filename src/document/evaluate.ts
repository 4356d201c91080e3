import { isObject, own } from '../json-object.ts'
import { documentLimits, Find, KeyOf } from './document.ts'
import { enumerate, frameOf, itemAt } from './enumerate.ts'
import { count, type Evaluation, itemsOf, KeyValue, type Lookup, maxDepth, type Scope } from './scope.ts'
import { type Expression, isTag, TagError } from './tags.ts'

/**
 * Replaces tags by their values. Tags that need a row of the database stay when a document is read: `!KeyOf`, `!Find`, and the
 * tags that depend on them. The check and the apply evaluate those again, with the keys (docs/blueprints.md).
 */

/** Evaluates the tags that need no database. @throws {TagError} */
export function evaluateNow(value: unknown, scope: Scope): unknown {
  const evaluation = evaluate(value, scope)
  let next = evaluation.next()
  while (next.done !== true) next = evaluation.next(next.value.tag)
  return next.value
}

/** Yields each look-up, and takes the `Key`, null for no row, or the tag itself to keep it. @throws {TagError} */
export function* evaluate(value: unknown, scope: Scope): Evaluation {
  if (typeof value !== 'object' || value === null) return value
  if (!isTag(value) && !scope.tagged.has(value)) return value
  const { done } = scope
  count(scope, 1)
  done.depth += 1
  if (done.depth > maxDepth) throw new TagError(undefined, `nests tags deeper than ${maxDepth}`)
  const result = isTag(value)
    ? yield* evaluateOrReport(value, scope)
    : yield* evaluateAll(value, { ...scope, asks: false })
  done.depth -= 1
  return result
}

/** Evaluates a tag. One with an error stays as it is, where errors are collected. */
function* evaluateOrReport(tag: KeyOf | Find | Expression, scope: Scope): Evaluation {
  const { errors } = scope.caller === 'refuse' ? {} : scope.caller
  const { count: before } = errors ?? {}
  const { depth } = scope.done
  try {
    return yield* evaluateTag(tag, scope)
  } catch (error) {
    // An error without a place concerns the whole document, which is over a limit.
    if (errors === undefined || !(error instanceof TagError) || error.offset === undefined) throw error
    scope.done.depth = depth
    // The error of a tag around another one only follows from that one.
    if (errors.count === before) errors.add(error)
    return tag
  }
}

/** The number of errors of tags so far. */
const failuresOf = ({ caller }: Scope): number => (caller === 'refuse' ? 0 : (caller.errors?.count ?? 0))

function* evaluateAll(value: object, scope: Scope): Generator<Lookup, object, unknown> {
  if (!Array.isArray(value)) return yield* evaluateFields(value, scope)
  count(scope, value.length)
  const items: unknown[] = []
  for (const item of value) items.push(yield* evaluate(item, scope))
  return items
}

function* evaluateFields(value: object, scope: Scope): Generator<Lookup, Record<string, unknown>, unknown> {
  const fields: [string, unknown][] = []
  for (const [name, inner] of Object.entries(value)) fields.push([name, yield* evaluate(inner, scope)])
  count(scope, fields.length)
  return Object.fromEntries(fields)
}

function* evaluateTag(tag: KeyOf | Find | Expression, scope: Scope): Evaluation {
  if (tag instanceof KeyOf) return yield { tag, asks: scope.asks }
  if (tag instanceof Find) return yield* look(tag.model, tag.identifiers, scope)
  const inner = { ...scope, asks: false }
  switch (tag.name) {
    case '!Find':
      return yield* find(tag, scope)
    case '!Env':
    case '!File':
      return yield* fromCaller(tag, inner)
    case '!Context':
      return yield* fromContext(tag, scope)
    case '!Format':
      return yield* format(tag, inner)
    case '!If': {
      const [condition, ...branches] = typeof tag.content === 'string' ? [tag.content] : tag.content
      if (condition === undefined || (branches.length !== 0 && branches.length !== 2))
        throw new TagError(tag, 'takes a condition, or a list of three: [condition, value if true, value if false].')
      const [yes, no] = branches.length === 0 ? [true, false] : branches
      const before = failuresOf(scope)
      const held = yield* evaluate(condition, { ...scope, asks: true })
      // The branch that counts is not known: only one of them needs a value.
      if (failuresOf(scope) > before) return tag
      if (!isTag(held)) return yield* evaluate(isTrue(held) ? yes : no, scope)
      return tag.with([held, yield* evaluate(yes, scope), yield* evaluate(no, scope)])
    }
    case '!Condition':
      return yield* combine(tag, scope)
    case '!Enumerate':
      return yield* enumerate(tag, inner, evaluate)
    case '!Index':
      return frameOf(tag, scope.frames).index
    case '!Value':
      return frameOf(tag, scope.frames).value
    case '!AtIndex': {
      const [list, index, ...rest] = itemsOf(tag, 'takes a list or mapping, an index, and a default if you like.', 2, 3)
      const [from, at] = [yield* evaluate(list, inner), yield* evaluate(index, inner)]
      if (isTag(from) || isTag(at)) {
        const kept: unknown[] = [from, at]
        if (rest.length > 0) kept.push(yield* evaluate(rest[0], scope))
        return tag.with(kept)
      }
      const found = itemAt(tag, from, at)
      if (found !== undefined) return found.value
      if (rest.length === 0) throw new TagError(tag, `${JSON.stringify(at)} is not there, and there is no default.`)
      return yield* evaluate(rest[0], scope)
    }
    case '!Unread':
      throw new TagError({ offset: tag.offset }, String(tag.content))
    default:
      return tag.name satisfies never
  }
}

const findUsage = 'takes a model and fields: !Find [service_flows.flow, {slug: x}] or [service_flows.flow, [slug, x]].'

function* find(tag: Expression, scope: Scope): Evaluation {
  const inner = { ...scope, asks: false }
  const [named, ...conditions] = itemsOf(tag, findUsage, 2)
  const model = yield* evaluate(named, inner)
  if (typeof model !== 'string') throw new TagError(tag, findUsage)
  const [first] = conditions
  if (isObject(first) && !isTag(first) && conditions.length === 1) return yield* look(model, first, scope)
  const fields = new Map<string, unknown>()
  for (const condition of conditions) {
    const [field, value, ...others] = Array.isArray(condition) ? condition : []
    const name = yield* evaluate(field, inner)
    if (typeof name !== 'string' || value === undefined || others.length > 0) throw new TagError(tag, findUsage)
    if (fields.has(name)) throw new TagError(tag, `names the field ${name} twice.`)
    fields.set(name, yield* evaluate(value, inner))
  }
  return yield { tag: new Find(model, Object.fromEntries(fields)), asks: scope.asks }
}

function* look(model: string, identifiers: Readonly<Record<string, unknown>>, scope: Scope): Evaluation {
  const fields = yield* evaluateFields(identifiers, { ...scope, asks: false })
  return yield { tag: new Find(model, fields), asks: scope.asks }
}

/** The name behind a tag, and its default: `NAME`, `NAME default text`, `[NAME]` and `[NAME, default]`. A path may hold spaces. */
function* nameOf(tag: Expression, scope: Scope): Generator<Lookup, readonly [string, ...unknown[]], unknown> {
  const { content } = tag
  const [first, ...rest] = typeof content !== 'string' ? content : tag.name === '!File' ? [content] : words(content)
  const name = yield* evaluate(first, { ...scope, asks: false })
  if (typeof name !== 'string' || name === '' || rest.length > 1)
    throw new TagError(tag, `takes a name, and a default if you like: ${tag.name} [NAME, default].`)
  return [name, ...rest]
}

const words = (text: string): string[] => /^(\S+)\s+(.+)$/s.exec(text)?.slice(1) ?? [text]

function* fromCaller(tag: Expression, scope: Scope): Evaluation {
  const { caller } = scope
  if (caller === 'refuse')
    throw new TagError(tag, 'is resolved on the side of the caller: apply the file with gatewright apply.')
  const [name, ...rest] = yield* nameOf(tag, scope)
  if (caller.read === 'keep') return tag.with(rest.length === 0 ? [name] : [name, yield* evaluate(rest[0], scope)])
  const found = caller.read(tag, name)
  if (found !== undefined) return found
  if (rest.length > 0) return yield* evaluate(rest[0], scope)
  const what = tag.name === '!Env' ? `the variable ${name} is not set, or is empty,` : `there is no file ${name},`
  throw new TagError(tag, `${what} and there is no default.`)
}

function* fromContext(tag: Expression, scope: Scope): Evaluation {
  const [name, ...rest] = yield* nameOf(tag, scope)
  const given = scope.caller === 'refuse' ? undefined : scope.caller.context.get(name)
  if (given !== undefined) return given
  if (Object.hasOwn(scope.context, name)) {
    if (scope.within.has(name)) throw new TagError(tag, `the value of ${name} in the context refers to itself.`)
    return yield* evaluate(own(scope.context, name), { ...scope, frames: [], within: new Set([...scope.within, name]) })
  }
  if (rest.length > 0) return yield* evaluate(rest[0], scope)
  const option = scope.caller === 'refuse' ? '' : `no --context ${name}=VALUE, and `
  throw new TagError(tag, `there is ${option}no ${name} in the context of the document, and no default.`)
}

function* format(tag: Expression, scope: Scope): Evaluation {
  const [template, ...rest] = typeof tag.content === 'string' ? [tag.content] : tag.content
  const pattern = yield* evaluate(template, scope)
  if (typeof pattern !== 'string' && !isTag(pattern)) throw new TagError(tag, 'takes a text with %s, then its values.')
  const values = yield* evaluateAll(rest, scope)
  if (!Array.isArray(values)) return values
  if (isTag(pattern) || values.some(isTag)) return tag.with([pattern, ...values])
  let used = 0
  const text = pattern.replace(/%(.?)/gs, (whole, kind: string) => {
    if (kind === '%') return '%'
    if (kind !== 's')
      throw new TagError(tag, `${JSON.stringify(whole)} is unknown: it takes %s, and %% for a percent sign.`)
    used += 1
    return textOf(values[used - 1], tag, used)
  })
  if (used < values.length) throw new TagError(tag, `has ${values.length} values for ${used} %s.`)
  scope.done.letters += text.length
  if (scope.done.letters > documentLimits.bytes)
    throw new TagError(tag, `makes texts of more than ${documentLimits.bytes} letters.`)
  return text
}

function textOf(value: unknown, tag: Expression, position: number): string {
  const plain = value instanceof KeyValue ? value.key : value
  if (!['string', 'number', 'boolean'].includes(typeof plain))
    throw new TagError(tag, `its value ${position} is missing, or is no text, number or boolean.`)
  return String(plain)
}

const modes: Readonly<Record<string, (values: readonly boolean[]) => boolean>> = {
  AND: (values) => values.every(Boolean),
  NAND: (values) => !values.every(Boolean),
  OR: (values) => values.some(Boolean),
  NOR: (values) => !values.some(Boolean),
  XOR: (values) => values.filter(Boolean).length % 2 === 1,
  XNOR: (values) => values.filter(Boolean).length % 2 === 0,
}

function* combine(tag: Expression, scope: Scope): Evaluation {
  const usage = `takes ${Object.keys(modes).join(', ')}, then one value or more.`
  const [first, ...rest] = itemsOf(tag, usage, 2)
  const mode = yield* evaluate(first, { ...scope, asks: false })
  const combined = typeof mode === 'string' ? own(modes, mode.toUpperCase()) : undefined
  if (combined === undefined) throw new TagError(tag, usage)
  const values: unknown[] = []
  for (const each of rest) {
    const value = yield* evaluate(each, { ...scope, asks: true })
    // The value may be a secret, so only its truth is kept.
    values.push(isTag(value) ? value : isTrue(value))
  }
  return values.some(isTag) ? tag.with([mode, ...values]) : combined(values.map(isTrue))
}

/** Whether a value is true. Variables and `--context` are texts, so some texts are false. */
export function isTrue(value: unknown): boolean {
  if (value instanceof KeyValue) return true
  if (Array.isArray(value)) return value.length > 0
  if (isObject(value)) return Object.keys(value).length > 0
  if (value === null || value === undefined) return false
  return value !== 0 && !['', '0', 'false', 'no', 'off'].includes(String(value).toLowerCase())
}
