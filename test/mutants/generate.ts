import { type ESTree, parseSync, Visitor } from 'vite'

/** A small change of a source file. `start` and `end`: what it replaces, in UTF-16 units. */
export type Mutant = {
  readonly file: string
  readonly start: number
  readonly end: number
  readonly to: string
  /** What is wrong with it, for a reader. */
  readonly why: string
}

export const mutated = (text: string, { start, end, to }: Mutant): string => text.slice(0, start) + to + text.slice(end)

const operators: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
}
const methods: Readonly<Record<string, string>> = { some: 'every', every: 'some' }
/** Calls that are left out: their object stands for their result. */
const passing = new Set(['filter', 'toSorted', 'toReversed', 'slice'])
/** Calls that no rule depends on. */
const talk = /^(await )?(this\.#?)?([\w.#]*\.)?(log|logger|console|metrics|counts|span)\b/

/** What no input leads to, by the types: it is no rule. */
const isImpossible = /^\{?\s*throw new Error\(/

/** A part of a statement in SQL, and what stands there instead. */
const sqlSwaps: readonly (readonly [RegExp, string])[] = [
  [/\bAND NOT\b/g, 'AND'],
  [/\bNOT EXISTS\b/g, 'EXISTS'],
  [/\bIS NOT NULL\b/g, 'IS NULL'],
  [/\bIS NULL\b/g, 'IS NOT NULL'],
  [/ FOR (?:NO KEY )?UPDATE\b| FOR (?:KEY )?SHARE\b/g, ''],
  [/ SKIP LOCKED\b/g, ''],
  [/ (?:DESC|ASC)\b/g, ''],
  [/(?<=\s)<=?(?=\s)/g, '>'],
  [/(?<=\s)>=?(?=\s)/g, '<'],
  [/(?<=\s)<>(?=\s)/g, '='],
]
const isSql = /\b(SELECT|UPDATE|INSERT INTO|DELETE FROM)\b/

/**
 * All mutants of a source file, in its order: conditions that always or never hold, operators and branches that are swapped,
 * calls and throws that are left out, and the same in statements of SQL.
 *
 * @throws {Error} when the text does not parse
 */
export function mutantsOf(file: string, text: string): Mutant[] {
  const { program, errors } = parseSync(file, text)
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`)
  const found: Mutant[] = []
  const source = ({ start, end }: Span) => text.slice(start, end)
  const replace = ({ start, end }: Span, to: string, why: string) => found.push({ file, start, end, to, why })
  const always = (test: ESTree.Expression) => {
    for (const to of ['true', 'false']) replace(test, to, `${short(source(test))} is always ${to}`)
  }
  const operator = ({ left, right, operator: from }: Operation) => {
    const to = operators[from]
    const start = left.end + text.slice(left.end, right.start).indexOf(from)
    if (to !== undefined)
      replace({ start, end: start + from.length }, to, `${to} for ${from} behind ${short(source(left))}`)
  }
  new Visitor({
    IfStatement({ test, consequent }) {
      if (!isImpossible.test(source(consequent))) always(test)
    },
    ConditionalExpression: ({ test }) => always(test),
    BinaryExpression: (node) => operator(node),
    LogicalExpression: (node) => operator(node),
    UnaryExpression(node) {
      if (node.operator === '!') replace(node, source(node.argument), `${short(source(node))} is not negated`)
    },
    CallExpression(node) {
      const { callee } = node
      if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier' || node.optional) return
      const { name } = callee.property
      const to = methods[name]
      if (to !== undefined) replace(callee.property, to, `${to} for ${short(source(callee))}`)
      if (passing.has(name)) replace(node, source(callee.object), `${short(source(node))} is left out`)
    },
    ExpressionStatement(node) {
      const call = node.expression.type === 'AwaitExpression' ? node.expression.argument : node.expression
      if (call.type === 'CallExpression' && !talk.test(source(node)))
        replace(node, ';', `${short(source(node))} is left out`)
    },
    ThrowStatement(node) {
      if (!isImpossible.test(source(node))) replace(node, ';', `${short(source(node))} is left out`)
    },
    TemplateLiteral(node) {
      if (!isSql.test(source(node))) return
      for (const { start, end } of node.quasis) {
        for (const [pattern, to] of sqlSwaps) {
          for (const { 0: from, index } of text.slice(start, end).matchAll(pattern)) {
            const at = start + index
            replace({ start: at, end: at + from.length }, to, `${near(text, at)}: ${to.trim() || 'nothing'} for${from}`)
          }
        }
      }
    },
  }).visit(program)
  return found.sort((one, other) => one.start - other.start)
}

type Span = { readonly start: number; readonly end: number }
type Operation = Pick<ESTree.BinaryExpression | ESTree.LogicalExpression, 'left' | 'right' | 'operator'>

const short = (code: string): string => {
  const line = code.replaceAll(/\s+/g, ' ')
  return line.length > 60 ? `${line.slice(0, 59)}…` : line
}

/** The words of a statement before a place. */
const near = (text: string, at: number): string => short(text.slice(Math.max(0, at - 40), at)).trim()
