import fc from 'fast-check'
import type { InjectOptions } from 'fastify'
import { type Known, mutated, odd, preferring, type Values, valuesOf } from './arbitrary.ts'
import type { Description, Operation, Parameter } from './openapi.ts'

/** Requests by the description, most of them with an error in some place. */

export type Tokens = { readonly admin: string; readonly other: string }

export function randomRequests({ document }: Description, known: Known, tokens: Tokens) {
  const values = valuesOf(document.components.schemas, known)
  const valueFor = ({ name, schema, in: place }: Parameter) =>
    preferring((place === 'path' ? known.get(`{${name}}`) : undefined) ?? known.get(name), values(schema))

  return (operation: Operation): fc.Arbitrary<InjectOptions> => {
    const places = operation.parameters.filter((each) => each.in === 'path')
    const path = fc.tuple(...places.map((each) => fc.oneof({ weight: 8, arbitrary: valueFor(each) }, odd)))
    const parts = { path, query: queryOf(operation, valueFor), headers: headersOf(operation, valueFor, tokens) }
    return fc.record({ ...parts, payload: bodyOf(operation, values) }).map(({ path, query, headers, payload }) => {
      const left = path.map(inPath)
      const url = operation.path.replace(/\{\w+\}/g, () => left.shift() ?? '')
      return {
        method: operation.method as 'GET',
        url: query === '' ? url : `${url}?${query}`,
        headers,
        ...(payload !== undefined && { payload }),
      }
    })
  }
}

type ValueFor = (parameter: Parameter) => fc.Arbitrary<unknown>

const text = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
/** Dots alone or an empty value would be another path. */
const inPath = (value: unknown) => encodeURIComponent(text(value).toWellFormed()).replace(/^\.{0,2}$/, 'x')
const inHeader = (value: unknown) =>
  text(value)
    .replace(/[^\x20-\x7e]/g, '~')
    .slice(0, 200)

const oddQueries = ['%', 'a=%ff', '&&==', 'page[]=1', '__proto__=1', 'page=1&page=1']

/** Some of the parameters, some of them odd, more than once or unknown. */
function queryOf({ parameters }: Operation, valueFor: ValueFor): fc.Arbitrary<string> {
  const described = parameters.filter((each) => each.in === 'query' && each.name !== 'dry_run')
  const pairsOf = (name: string, value: unknown) => [value].flat().map((each) => [name, text(each)])
  const known = described.map((each) =>
    fc.oneof({ weight: 7, arbitrary: valueFor(each) }, odd).map((value) => pairsOf(each.name, value)),
  )
  const unknown = fc.tuple(fc.string({ maxLength: 8 }), odd).map(([name, value]) => pairsOf(name, value))
  const some = fc.array(fc.oneof(...known.map((arbitrary) => ({ weight: 3, arbitrary })), unknown), { maxLength: 4 })
  const encoded = some.map((all) =>
    new URLSearchParams(all.flat().map((pair) => pair.map((each) => each.toWellFormed()))).toString(),
  )
  return fc.oneof(
    { weight: 12, arbitrary: described.length === 0 ? fc.constant('') : encoded },
    { weight: 2, arbitrary: fc.constant('') },
    encoded,
    fc.constantFrom(...oddQueries),
  )
}

function headersOf({ parameters, requestBody }: Operation, valueFor: ValueFor, { admin, other }: Tokens) {
  const rare = parameters
    .filter((each) => each.in === 'header')
    .map((each) => [
      each.name.toLowerCase(),
      fc.oneof({ weight: 20, arbitrary: fc.constant(undefined) }, fc.oneof(valueFor(each), odd).map(inHeader)),
    ])
  const usually = (value: string, ...others: string[]) =>
    fc.oneof({ weight: 20, arbitrary: fc.constant(value) }, fc.constantFrom(...others))
  const all: Record<string, fc.Arbitrary<string | undefined>> = {
    ...Object.fromEntries(rare),
    authorization: usually(`Bearer ${admin}`, `Bearer ${other}`, 'Bearer wrong', 'Basic eDp5', ''),
    ...(requestBody && {
      'content-type': usually(
        takesForm(requestBody) ? form : 'application/json',
        'application/yaml',
        'text/plain',
        '{',
      ),
    }),
  }
  return fc
    .record(all)
    .map((headers) => Object.fromEntries(Object.entries(headers).filter((entry) => entry[1] !== undefined)))
}

const form = 'application/x-www-form-urlencoded'
const takesForm = ({ content }: NonNullable<Operation['requestBody']>) => Object.hasOwn(content, form)

/** The fields of a value, as a form has them. */
const formOf = (value: unknown): string =>
  new URLSearchParams(Object.entries(Object(value)).map(([name, field]) => [name, text(field)])).toString()

function bodyOf({ requestBody }: Operation, values: Values): fc.Arbitrary<string | undefined> {
  const content = requestBody?.content['application/json'] ?? requestBody?.content[form]
  if (content === undefined) return fc.constant(undefined)
  const shown = [content.example, ...Object.values(content.examples ?? {}).map(({ value }) => value)]
  const shipped = shown.filter((value) => value !== undefined).map((value) => fc.constant(value))
  const right = mutated(fc.oneof(values(content.schema), ...shipped))
  const isForm = requestBody !== undefined && takesForm(requestBody)
  const body = right.map((value) => (isForm ? formOf(value) : (JSON.stringify(value) ?? '')))
  const cutOff = fc.tuple(body, fc.nat(200)).map(([all, length]) => all.slice(0, length))
  const others = fc.constantFrom('', '[]', 'null', '{"a":1e999}', '[[[', '"\ud800"')
  return fc.oneof({ weight: 20, arbitrary: body }, cutOff, others)
}
