import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ErrorList, Problem } from '../errors.ts'
import { isObject } from '../json-object.ts'
import { notKept, parseJson as parse, Unkept } from '../numbers.ts'
import { versionPath } from '../paths.ts'
import { type Actor, mayWriteAnything } from '../permissions.ts'
import { alone } from '../turns.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The limit of a route that takes longer bodies than others. */
    bodyLimits?: BodyLimits
    /** The handler reports `textErrors` together with its own errors. Without it, they are an answer by themselves. */
    reportsTextErrors?: true
  }
  interface FastifyRequest {
    /** Texts and numbers of the body that cannot be stored; undefined without a body. */
    textErrors: ErrorList | undefined
  }
}

export type BodyLimits = { readonly bytes: number; readonly depth: number; readonly nodes: number }

export const bodyLimits: BodyLimits = { bytes: 1_048_576, depth: 32, nodes: 10_000 }

export const limitsOf = ({ routeOptions }: Pick<FastifyRequest, 'routeOptions'>): BodyLimits =>
  routeOptions.config.bodyLimits ?? bodyLimits

/** The longest body of a caller who may write nothing. A longer one is refused, mostly before it arrives. */
const readersBytes = 65_536

/** A longer text takes so long to parse that other requests would wait for it. */
const longBytes = 65_536

/** Some routes are for anyone. */
type Caller = Pick<FastifyRequest, 'ip'> & { readonly actor?: Actor }

/** Parses the text of a caller. A long one waits for the caller's turn (docs/adr/0063-long-work-takes-turns.md). */
export async function readLong<Result>({ actor, ip }: Caller, bytes: number, read: () => Result): Promise<Result> {
  return bytes <= longBytes ? read() : alone(actor?.pk ?? ip, read)
}

function refuseLong({ actor }: Caller, bytes: number): void {
  if (bytes <= readersBytes || actor === undefined || mayWriteAnything(actor)) return
  const detail = `The body is larger than ${readersBytes} bytes, the most for a caller without a permission to write.`
  throw new Problem('too_large', detail)
}

/** Accepts JSON alone; everything else is 415. */
export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.decorateRequest('textErrors')
  takeJson(app, bodyLimits)
  app.addHook('onRequest', async (request) => {
    const { headers } = request
    const isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
    // Many clients send a media type with every request.
    if (isEmpty && takesNoBody(request)) delete headers['content-type']
  })
  app.addHook('preParsing', async (request) => refuseLong(request, Number(request.headers['content-length'] ?? 0)))
  app.addHook('preValidation', async ({ routeOptions, textErrors }) => {
    if (routeOptions.config.reportsTextErrors !== true) textErrors?.throwIfAny()
  })
}

/** @param read makes the value of a body that is neither too long for its caller nor compressed */
function take(
  app: FastifyInstance,
  mediaType: string,
  limits: BodyLimits,
  read: (request: FastifyRequest, body: Buffer) => unknown,
): void {
  const options = { parseAs: 'buffer', bodyLimit: limits.bytes } as const
  app.addContentTypeParser(mediaType, options, async (request: FastifyRequest, body: Buffer) => {
    refuseLong(request, body.length)
    refuseEncoded(request)
    return read(request, body)
  })
}

const takeJson = (app: FastifyInstance, limits: BodyLimits): void =>
  take(app, 'application/json', limits, async (request, body) => {
    const isWithout = takesNoBody(request)
    if (isWithout && body.length === 0) return undefined
    const { value, errors } = await readLong(request, body.length, () => parseJson(body, limits))
    if (isWithout && value !== null && !(isObject(value) && Object.keys(value).length === 0))
      errors.add([], 'unknown_field', 'This request takes no body: leave it out.')
    request.textErrors = errors
    return value
  })

/** The body of an operation that needs none: `{}` and null count as none, and any other is refused. */
const takesNoBody = ({ routeOptions: { schema, url } }: FastifyRequest): boolean =>
  schema?.body === undefined && url?.startsWith(versionPath) === true

/** Accepts YAML too, as text, on the routes of this plugin (RFC 9512), and JSON with other limits. */
export function acceptDocuments(app: FastifyInstance, limits: BodyLimits): void {
  app.removeContentTypeParser('application/json')
  takeJson(app, limits)
  take(app, 'application/yaml', limits, (_, body) => {
    if (!isUtf8(body)) throw new Problem('invalid_json', 'The body is not UTF-8.')
    return body.toString('utf8')
  })
}

/** The media types of bodies that the routes of this plugin take. */
export const mediaTypesOf = (app: Pick<FastifyInstance, 'hasContentTypeParser'>): string[] =>
  ['application/json', 'application/yaml', 'application/x-www-form-urlencoded'].filter((type) =>
    app.hasContentTypeParser(type),
  )

/** Bodies are not decompressed: a small one could become any size. */
function refuseEncoded({ headers, server }: FastifyRequest): void {
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity') return
  const detail = `Send ${mediaTypesOf(server).join(' or ')} without a Content-Encoding.`
  throw new Problem('unsupported_media_type', detail)
}

/**
 * A parsed body. Texts and numbers that cannot be stored are reported in `errors` and sanitised in `value`, so that the value can
 * be checked for other errors in the same request. A value with errors is never applied.
 */
export type ParsedBody = { readonly value: unknown; readonly errors: ErrorList }

/** @throws {Problem} `invalid_json` for text that is not JSON, `invalid` for a value that is too deep or too large */
export function parseJson(body: Buffer, limits = bodyLimits): ParsedBody {
  if (body.length === 0) throw new Problem('invalid_json', 'The body is empty: it must be a JSON object.')
  if (!isUtf8(body)) throw new Problem('invalid_json', 'The body is not UTF-8.')
  let value: unknown
  try {
    value = parse(textOf(body))
  } catch (error) {
    throw new Problem('invalid_json', `The body is not JSON${placeOf(error)}.`)
  }
  return sanitise(value, limits)
}

/** Removes a byte order mark, which editors and PowerShell write, and a reader may ignore (RFC 8259, section 8.1). */
const textOf = (body: Buffer) => body.toString('utf8').replace(/^\ufeff/, '')

/** The line and column of the syntax error. The parser's message is not used: it may quote secrets of the body. */
function placeOf(error: unknown): string {
  const [, line, column] = /\(line (\d+) column (\d+)\)/.exec(error instanceof Error ? error.message : '') ?? []
  return line === undefined ? '' : ` (line ${line}, column ${column})`
}

/** Sanitises the value in its place. It is no deeper than the limit, so that recursion is safe. */
function sanitise(root: unknown, limits: BodyLimits): ParsedBody {
  const errors = new ErrorList()
  const path: (string | number)[] = []
  let nodes = 1
  let isTooDeep = false

  /** Whether PostgreSQL can store the text, and UTF-8 encode it. */
  const isStorable = (text: string): boolean => {
    const holdsNul = text.includes('\0')
    const isWellFormed = text.isWellFormed()
    if (holdsNul) errors.add([...path], 'invalid_text', 'May not hold the NUL character.')
    if (!isWellFormed)
      errors.add([...path], 'invalid_text', 'Is not well-formed Unicode: half of a surrogate pair is missing.')
    return !holdsNul && isWellFormed
  }
  const isNameAllowed = (name: string): boolean => {
    if (name === '__proto__') errors.add([...path], 'unknown_field', 'No field may have this name.')
    return isStorable(name) && name !== '__proto__'
  }

  function visit(value: unknown): unknown {
    if (path.length > limits.depth) {
      errors.add(path.slice(0, 2), 'too_deep', `Is nested deeper than ${limits.depth} levels.`)
      isTooDeep = true
      return value
    }
    if (typeof value === 'string') return isStorable(value) ? value : value.replaceAll('\0', '').toWellFormed()
    if (value instanceof Unkept) {
      errors.add([...path], 'invalid_value', notKept)
      return value.value
    }
    if (typeof value !== 'object' || value === null) return value
    const names = Object.keys(value)
    nodes += names.length
    // Its items are counted before the walk into it, so that a large array costs nothing.
    if (nodes > limits.nodes) return value
    for (const name of names) {
      path.push(Array.isArray(value) ? Number(name) : name.toWellFormed().replaceAll('\0', '\ufffd'))
      const isKept = isNameAllowed(name)
      // The value of a field that is removed is checked all the same.
      const inner: unknown = Reflect.get(value, name)
      const sanitised = visit(inner)
      if (!isKept) Reflect.deleteProperty(value, name)
      else if (sanitised !== inner) Reflect.set(value, name, sanitised)
      path.pop()
    }
    return value
  }

  const value = visit(root)
  const isTooMuch = nodes > limits.nodes
  if (isTooMuch) errors.add([], 'too_long', `Holds more than ${limits.nodes} values.`)
  if (isTooDeep || isTooMuch) errors.throwIfAny()
  return { value, errors }
}
