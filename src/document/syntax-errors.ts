import { EVENT_ID, type Event, type YAMLException } from 'js-yaml'
import { nearest } from '../messages.ts'
import { documentLimits } from './document.ts'
import { type LineColumn, nodesOf, placesIn } from './nodes.ts'
import { expressionNames } from './tags.ts'

/** Reports why a text is not YAML: the parser's reason with its place, and a hint for what that reason does not name. */

/** The hints, by the start of the parser's reason. */
const hints: readonly (readonly [reason: string, hint: string])[] = [
  [
    'bad indentation',
    'Keys of one mapping, and items of one list, begin in one column; a text with ": " or a leading sign such as @ stands in quotes.',
  ],
  ['deficient indentation', 'A bracket or quote above is never closed, or what follows it is no YAML.'],
  [
    'end of the stream',
    'Keys of one mapping begin in one column, with a colon and a space behind each: see this line and the one above.',
  ],
  [
    'can not read a block mapping entry',
    'Each key has a colon and a space behind it: see this line and the one above.',
  ],
  ['object-based map', 'A text with braces or brackets, such as {{ name }}, stands in quotes.'],
  ['nesting exceeded', `It is nested deeper than ${documentLimits.depth}.`],
]

/** @param events the events of the text, as far as it could be read */
export function explain(
  { reason, mark }: YAMLException,
  text: string,
  events: readonly Event[],
): { readonly message: string; readonly place: LineColumn } {
  // The parser names the start of the document for it.
  const nodeKey = reason.startsWith('object-based map') ? firstNodeKey(text, events) : undefined
  const offset = nodeKey ?? mark?.position ?? 0
  const place = placesIn(text)(offset)
  const hint = hintOfTag(reason, text.slice(offset)) ?? hints.find(([start]) => reason.startsWith(start))?.[1]
  // A name in the reason is left out: it may be the start of a secret.
  const unnamed = reason.replace(/ ?(".*"|!<.*>|: .*)/s, '')
  const sentence = `Line ${place.line} cannot be read as YAML: ${unnamed}.`
  return { message: hint === undefined ? sentence : `${sentence} ${hint}`, place }
}

const firstNodeKey = (text: string, events: readonly Event[]): number | undefined =>
  nodesOf(text, events).find(({ event, isKey }) => isKey && event.type !== EVENT_ID.SCALAR)?.start

function hintOfTag(reason: string, written: string): string | undefined {
  if (!reason.startsWith('unknown') || !written.startsWith('!')) return undefined
  const names = [...expressionNames, '!KeyOf']
  const name = /^![\w!-]{1,20}/.exec(written)?.[0] ?? ''
  if (name === '!KeyOf') return '!KeyOf takes a text.'
  if (names.some((each) => each === name)) return `${name} takes a text or a list.`
  const near = nearest(name, names)
  if (near !== undefined) return `Did you mean ${near}?`
  return `A text that begins with ! stands in quotes. Tags are ${names.join(', ')}.`
}
