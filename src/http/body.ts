import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Faults, type FieldPath, Problem } from '../errors.ts'

/** Bounds of a request body (decisions.md 1). */
export const bodyLimits = { bytes: 1_048_576, depth: 32, nodes: 10_000 } as const

/** JSON is the only language spoken here; everything else is 415. */
export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: bodyLimits.bytes },
    async ({ headers }: FastifyRequest, body: Buffer) => {
      refusePacked(headers['content-encoding'])
      return parseJson(body)
    },
  )
}

/** Nothing is unpacked here: a small body could become any size. */
function refusePacked(encoding: string | undefined): void {
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return
  throw new Problem('unsupported_media_type', 'Send application/json without a Content-Encoding.')
}

/**
 * @throws {Problem} `invalid_json` for text that is no JSON, `invalid` naming members with values that cannot be kept
 */
export function parseJson(body: Buffer): unknown {
  if (body.length === 0) throw new Problem('invalid_json', 'The body is empty: it must be a JSON object.')
  if (!isUtf8(body)) throw new Problem('invalid_json', 'The body is not UTF-8.')
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw new Problem('invalid_json', `The body is not JSON${placeOf(error)}.`)
  }
  checkShape(value)
  return value
}

/** Where it stops being JSON. The parser's own words may quote the body, and a pipeline's log is no place for that. */
function placeOf(error: unknown): string {
  const [, line, column] = /\(line (\d+) column (\d+)\)/.exec(error instanceof Error ? error.message : '') ?? []
  return line === undefined ? '' : ` (line ${line}, column ${column})`
}

/** Walks without recursion: depth is what is being bounded. */
function checkShape(root: unknown): void {
  const faults = new Faults()
  const open: { value: unknown; path: FieldPath }[] = [{ value: root, path: [] }]
  let nodes = 0
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, path } = next
    nodes += 1
    if (nodes > bodyLimits.nodes) {
      faults.add([], `Holds more than ${bodyLimits.nodes} values.`)
      break
    }
    if (path.length > bodyLimits.depth) {
      faults.add(path.slice(0, 2), `Is nested deeper than ${bodyLimits.depth} levels.`)
      continue
    }
    if (typeof value === 'string') checkText(value, path, faults)
    else if (typeof value === 'number' && !Number.isFinite(value)) faults.add(path, 'Is too large a number.')
    else if (Array.isArray(value))
      for (const [index, item] of value.entries()) open.push({ value: item, path: [...path, index] })
    else if (typeof value === 'object' && value !== null) {
      for (const [name, member] of Object.entries(value)) {
        checkName(name, path, faults)
        open.push({ value: member, path: [...path, name] })
      }
    }
  }
  faults.throwIfAny()
}

function checkText(text: string, path: FieldPath, faults: Faults): void {
  if (text.includes('\0')) faults.add(path, 'May not hold the NUL character.')
  if (!text.isWellFormed()) faults.add(path, 'Is not well-formed Unicode: half of a surrogate pair is missing.')
}

function checkName(name: string, path: FieldPath, faults: Faults): void {
  if (name === '__proto__') faults.add([...path, name], 'No member may have this name.')
  checkText(name, [...path, name.toWellFormed().replaceAll('\0', '�')], faults)
}
