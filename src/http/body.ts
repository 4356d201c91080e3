import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Faults, type FieldPath, Problem } from '../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler tells `textFaults` together with the faults it finds. Without it they are an answer of their own. */
    tellsTextFaults?: true
  }
  interface FastifyRequest {
    /** What stands in the body and cannot be kept; undefined without a body. */
    textFaults: Faults | undefined
  }
}

/** Bounds of a request body (decisions.md 1). */
export const bodyLimits = { bytes: 1_048_576, depth: 32, nodes: 10_000 } as const

/** JSON is the only language spoken here; everything else is 415. */
export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.decorateRequest('textFaults')
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: bodyLimits.bytes },
    async (request: FastifyRequest, body: Buffer) => {
      refusePacked(request.headers['content-encoding'])
      const { value, faults } = parseJson(body)
      request.textFaults = faults
      return value
    },
  )
  app.addHook('preValidation', async ({ routeOptions, textFaults }) => {
    if (routeOptions.config.tellsTextFaults !== true) textFaults?.throwIfAny()
  })
}

/** Takes YAML too, as text, on the routes of this plugin (RFC 9512). */
export function acceptYaml(app: FastifyInstance, limits: { bytes: number }): void {
  app.addContentTypeParser(
    'application/yaml',
    { parseAs: 'buffer', bodyLimit: limits.bytes },
    async (request: FastifyRequest, body: Buffer) => {
      refusePacked(request.headers['content-encoding'])
      if (!isUtf8(body)) throw new Problem('invalid_json', 'The body is not UTF-8.')
      return body.toString('utf8')
    },
  )
}

/** Nothing is unpacked here: a small body could become any size. */
function refusePacked(encoding: string | undefined): void {
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return
  throw new Problem('unsupported_media_type', 'Send application/json without a Content-Encoding.')
}

/**
 * A body as read. What cannot be kept is told in `faults` and mended in `value`, so that one answer can also tell what
 * else is wrong with it; with any of them, the value is for judging only.
 */
export type ParsedBody = { readonly value: unknown; readonly faults: Faults }

/**
 * @throws {Problem} `invalid_json` for text that is no JSON, `invalid` for what is too deep or too much to read on
 */
export function parseJson(body: Buffer): ParsedBody {
  if (body.length === 0) throw new Problem('invalid_json', 'The body is empty: it must be a JSON object.')
  if (!isUtf8(body)) throw new Problem('invalid_json', 'The body is not UTF-8.')
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw new Problem('invalid_json', `The body is not JSON${placeOf(error)}.`)
  }
  return mend(value)
}

/** Where it stops being JSON. The parser's own words may quote the body, and a pipeline's log is no place for that. */
function placeOf(error: unknown): string {
  const [, line, column] = /\(line (\d+) column (\d+)\)/.exec(error instanceof Error ? error.message : '') ?? []
  return line === undefined ? '' : ` (line ${line}, column ${column})`
}

/** A value with where it stands, for putting another in its place. */
type Node = { value: unknown; holder: object; name: string | number; path: FieldPath }

/** Walks without recursion: depth is what is being bounded. */
function mend(root: unknown): ParsedBody {
  const faults = new Faults()
  const whole = { value: root }
  const open: Node[] = [{ value: root, holder: whole, name: 'value', path: [] }]
  let nodes = 1
  let isTooDeep = false
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, holder, name, path } = next
    if (path.length > bodyLimits.depth) {
      faults.add(path.slice(0, 2), `Is nested deeper than ${bodyLimits.depth} levels.`)
      isTooDeep = true
    } else if (typeof value === 'string') {
      if (!isKept(value, path, faults)) Reflect.set(holder, name, value.replaceAll('\0', '').toWellFormed())
    } else if (typeof value === 'number' && !Number.isFinite(value)) {
      faults.add(path, 'Is too large a number.')
      Reflect.set(holder, name, Math.sign(value) * Number.MAX_SAFE_INTEGER)
    } else if (typeof value === 'object' && value !== null) {
      nodes += Object.keys(value).length
      // Counted before it is opened: half a million zeros are not worth half a million steps.
      if (nodes > bodyLimits.nodes) continue
      for (const inner of Array.isArray(value) ? itemsOf(value, path) : membersOf(value, path, faults)) open.push(inner)
    }
  }
  const isTooMuch = nodes > bodyLimits.nodes
  if (isTooMuch) faults.add([], `Holds more than ${bodyLimits.nodes} values.`)
  if (isTooDeep || isTooMuch) faults.throwIfAny()
  return { value: whole.value, faults }
}

const itemsOf = (list: readonly unknown[], path: FieldPath): Node[] =>
  list.map((value, index) => ({ value, holder: list, name: index, path: [...path, index] }))

/** A member whose name cannot be kept is taken out of its object; what it holds is looked through all the same. */
function membersOf(object: object, path: FieldPath, faults: Faults): Node[] {
  return Object.entries(object).map(([name, value]) => {
    const at = [...path, name.toWellFormed().replaceAll('\0', '\ufffd')]
    if (name === '__proto__') faults.add(at, 'No member may have this name.')
    const isOut = !isKept(name, at, faults) || name === '__proto__'
    if (isOut) Reflect.deleteProperty(object, name)
    return { value, holder: isOut ? {} : object, name, path: at }
  })
}

/** Whether PostgreSQL stores the text and UTF-8 carries it. */
function isKept(text: string, path: FieldPath, faults: Faults): boolean {
  const holdsNul = text.includes('\0')
  const isWellFormed = text.isWellFormed()
  if (holdsNul) faults.add(path, 'May not hold the NUL character.')
  if (!isWellFormed) faults.add(path, 'Is not well-formed Unicode: half of a surrogate pair is missing.')
  return !holdsNul && isWellFormed
}
