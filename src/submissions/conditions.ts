import { z } from 'zod'
import { type Blueprint, stackOf } from '../document/document.ts'
import type { ErrorList, ErrorSink } from '../errors.ts'
import { withExample } from '../example.ts'
import { type Headers, headerText } from '../http/headers.ts'
import { codeOfIssue, unknownName } from '../messages.ts'
import { ownerLabel } from '../models/fields.ts'
import { comparedName } from '../names.ts'
import { type Acknowledgements, acknowledgements, nothingAllowed, type RequestConditions } from '../plan/engine.ts'
import { deliveryHeaders } from './delivery.ts'

/** The conditions of an apply, as request headers. */

const words = Object.keys(acknowledgements.shape)

const meanings = Object.entries(acknowledgements.shape).map(([word, schema]) => `\`${word}\` (${schema.description})`)

/** The owner of the objects, and the effects that the caller acknowledges. */
export const ownerHeaders = z.object({
  'Gatewright-Owner': withExample(
    ownerLabel().optional(),
    'team-a',
    'The label under which you manage the application and its provider. What another owner manages, and what another user made without one, is a 409.',
  ),
  'Gatewright-Allow': withExample(
    z.string().optional(),
    'takeover, grants',
    `What would be a 409 otherwise, separated by commas: ${meanings.join(', ')}.`,
  ),
})

/** The headers of a request for one row, which names the row that it takes over. */
export const allowHeaders = ownerHeaders.pick({ 'Gatewright-Allow': true })

export const conditionHeaders = z.object({
  'Gatewright-Stack': withExample(
    ownerLabel().optional(),
    'corp/identity',
    'The stack of the document: what it names belongs to the stack, and what the stack has and it does not name is left over. What another stack has is a 409.',
  ),
  'If-Match': withExample(
    z.string().optional(),
    '"9mfbLkQ0kGoTzVW3fGB1pA"',
    'The `ETag` of a plan (`dry_run=true`): applies exactly what was planned, or answers 412 with what changed since.',
  ),
  'If-None-Match': z.literal('*').optional().meta({ description: 'Create only: what exists already is a 412.' }),
  ...ownerHeaders.shape,
})

const namesOf = ({ shape }: { readonly shape: object }) => Object.keys(shape).map((name) => name.toLowerCase())
const ofWrites = namesOf(ownerHeaders)
const ofApplies = [...namesOf(conditionHeaders), ...namesOf(deliveryHeaders)]

/** The conditions in the query and in the document. */
export type SentConditions = Partial<Pick<RequestConditions, 'mode' | 'replaceProvider' | 'reset'>> &
  Partial<Pick<Blueprint, 'prune' | 'metadata'>> & {
    /** The owner that the document names, if any. */
    readonly owner?: string
    /** The owner of the run whose document is applied again. */
    readonly formerOwner?: string | null
    /** The stack of that run. */
    readonly formerStack?: string | null
  }

/**
 * @param asked the conditions that are not in the headers
 * @param errors those of the headers are added, to be reported with those of the body
 */
export function readConditions(
  headers: Headers,
  errors: ErrorList,
  {
    owner: documentOwner,
    formerOwner = null,
    formerStack = null,
    mode = 'apply',
    replaceProvider = false,
    prune = false,
    metadata,
    reset = false,
  }: SentConditions = {},
): RequestConditions {
  const ofHeaders = errors.of('header')
  const { owner: sentOwner, allow } = readOwnership(headers, errors, ofApplies)
  const owner = sentOwner ?? documentOwner ?? (formerOwner && comparedName(formerOwner))
  if (sentOwner !== null && documentOwner !== undefined && sentOwner !== documentOwner)
    ofHeaders.add(
      ['Gatewright-Owner'],
      'invalid_combination',
      `The document names the owner ${JSON.stringify(documentOwner)}: leave one out.`,
    )
  const reviewed = readReviewed(headers['if-match'], ofHeaders)
  if (reviewed !== null && mode === 'plan')
    ofHeaders.add(['If-Match'], 'invalid_combination', 'A plan has no plan before it: leave one out.')
  const createOnly = readCreateOnly(headers['if-none-match'], ofHeaders)
  if (prune === true && owner === null)
    errors.add(['prune'], 'invalid_combination', 'It takes an owner: Gatewright-Owner, or owner of the document.')
  const sentStack = readLabel('Gatewright-Stack', headers, ofHeaders)
  const ownStack = stackOf({ prune, ...(metadata && { metadata }) }, owner)
  if (ownStack !== null && sentStack !== null)
    errors.add(['prune'], 'invalid_combination', 'The request names a stack: leave prune out.')
  const stack = sentStack ?? ownStack ?? formerStack
  return { mode, reviewed, createOnly, owner, allow, replaceProvider, stack, reset }
}

/**
 * @param errors those of the headers are added
 * @param known the headers that the route takes
 */
export function readOwnership(
  headers: Headers,
  errors: ErrorList,
  known: readonly string[] = ofWrites,
): Pick<RequestConditions, 'owner' | 'allow'> {
  const ofHeaders = errors.of('header')
  refuseUnknown(headers, ofHeaders, known)
  return {
    owner: readLabel('Gatewright-Owner', headers, ofHeaders),
    allow: readAllowed(headers['gatewright-allow'], ofHeaders),
  }
}

/** Refuses unknown headers: with a mistyped one, the apply would go on without its condition. */
function refuseUnknown(headers: Headers, errors: ErrorSink, known: readonly string[]): void {
  for (const name of Object.keys(headers))
    if (name.startsWith('gatewright-') && !known.includes(name))
      errors.add([name], 'unknown_header', unknownName('header', name, known))
}

function readCreateOnly(value: string | string[] | undefined, errors: ErrorSink): boolean {
  if (value === undefined) return false
  if (value !== '*')
    errors.add(['If-None-Match'], 'invalid_choice', 'Only * is taken: create, and refuse what is there already.')
  return true
}

function readReviewed(value: string | string[] | undefined, errors: ErrorSink): string | null {
  if (value === undefined) return null
  const [, tag] = /^"([\w-]{22})"$/.exec(String(value).trim()) ?? []
  if (tag === undefined)
    errors.add(['If-Match'], 'wrong_format', 'It takes the ETag that a plan answered, with its quotes.')
  return tag ?? null
}

function readLabel(name: 'Gatewright-Owner' | 'Gatewright-Stack', headers: Headers, errors: ErrorSink): string | null {
  const value = headers[name.toLowerCase()]
  if (value === undefined) return null
  const parsed = ownerLabel().safeParse(headerText(value))
  for (const issue of parsed.error?.issues ?? []) errors.add([name], codeOfIssue(issue, value), issue.message)
  return parsed.data ?? null
}

type Word = keyof Acknowledgements

/** The number of rows that a header names; NaN for any other text. */
const count = (text: string): number => (/^\d{1,9}$/.test(text) ? Number(text) : Number.NaN)

function readAllowed(value: string | string[] | undefined, errors: ErrorSink): Acknowledgements {
  const sent = String(value ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
  const allowed: Record<string, boolean | number> = {}
  for (const each of sent) {
    const [word = '', number] = each.split('=', 2)
    const parsed = acknowledgements.partial().safeParse({ [word]: number === undefined ? true : count(number) })
    if (words.includes(word) && parsed.success) Object.assign(allowed, { [word]: parsed.data[word as Word] })
    else if (word === 'deletes') errors.add(['Gatewright-Allow'], 'wrong_format', 'deletes takes a number: deletes=3.')
    else
      errors.add(
        ['Gatewright-Allow'],
        'invalid_choice',
        `${JSON.stringify(each.slice(0, 50))}: ${unknownName('word', word, words)} It takes ${words.join(', ')}.`,
      )
  }
  return { ...nothingAllowed, ...allowed }
}
