import { createServer } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'
import { atEnd } from './at-end.ts'

/** A receiver of traces: OTLP over HTTP in protobuf, as collectors take it (opentelemetry/proto/trace/v1/trace.proto). */

export type ReceivedSpan = {
  readonly trace: string
  readonly id: string
  /** Empty: it begins the trace. */
  readonly parent: string
  readonly name: string
  readonly kind: string
  readonly attributes: Readonly<Record<string, unknown>>
  readonly isError: boolean
  /** Its events, such as `exception`, with their attributes. */
  readonly events: readonly Readonly<Record<string, unknown>>[]
  /** The message of its status. */
  readonly message: string
  readonly state: string
  readonly startNs: bigint
  readonly endNs: bigint
  /** `service.name` and the like. */
  readonly resource: Readonly<Record<string, unknown>>
}

export type Receiver = {
  /** The value of OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** Path and headers of each delivery. */
  readonly deliveries: readonly { readonly path: string; readonly headers: Readonly<Record<string, unknown>> }[]
}

/** @param answers false: it takes connections and requests, and never answers */
export async function receiveTraces({ answers = true } = {}): Promise<Receiver> {
  const spans: ReceivedSpan[] = []
  const deliveries: Receiver['deliveries'][number][] = []
  const server = createServer(async (request, reply) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (!answers) return
    const body = Buffer.concat(chunks)
    deliveries.push({ path: request.url ?? '', headers: request.headers })
    spans.push(...spansOf(request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body))
    reply.writeHead(200, { 'Content-Type': 'application/x-protobuf' }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(async () => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = z.object({ port: z.int() }).parse(server.address())
  return { url: `http://127.0.0.1:${port}`, spans, deliveries }
}

const kinds = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer']
const failed = 2n

function spansOf(body: Buffer): ReceivedSpan[] {
  return messages(body, 1).flatMap((resourceSpans) => {
    const resource = attributesOf(messages(resourceSpans, 1)[0] ?? Buffer.alloc(0), 1)
    return messages(resourceSpans, 2).flatMap((scopeSpans) =>
      messages(scopeSpans, 2).map((span) => ({
        trace: bytes(span, 1).toString('hex'),
        id: bytes(span, 2).toString('hex'),
        state: bytes(span, 3).toString(),
        parent: bytes(span, 4).toString('hex'),
        name: bytes(span, 5).toString(),
        kind: kinds[Number(number(span, 6))] ?? 'unknown',
        startNs: bytes(span, 7).readBigUInt64LE(),
        endNs: bytes(span, 8).readBigUInt64LE(),
        attributes: attributesOf(span, 9),
        isError: messages(span, 15).some((status) => number(status, 3) === failed),
        events: messages(span, 11).map((event) => attributesOf(event, 3)),
        message: messages(span, 15)
          .map((status) => bytes(status, 2).toString())
          .join(),
        resource,
      })),
    )
  })
}

/** A list of `KeyValue`. */
function attributesOf(message: Buffer, field: number): Record<string, unknown> {
  return Object.fromEntries(
    messages(message, field).map((pair) => [bytes(pair, 1).toString(), anyValue(messages(pair, 2)[0])]),
  )
}

/** `AnyValue`: text, truth or number. */
function anyValue(value: Buffer | undefined): unknown {
  const [[field, content] = []] = value === undefined ? [] : fieldsOf(value)
  if (field === 1) return String(content)
  if (field === 2) return content === 1n
  if (field === 3) return Number(content)
  if (field === 4 && content instanceof Buffer) return content.readDoubleLE()
  return undefined
}

const messages = (message: Buffer, field: number): Buffer[] =>
  fieldsOf(message).flatMap(([each, content]) => (each === field && content instanceof Buffer ? [content] : []))

const bytes = (message: Buffer, field: number): Buffer => messages(message, field)[0] ?? Buffer.alloc(0)

const number = (message: Buffer, field: number): bigint =>
  fieldsOf(message).flatMap(([each, content]) => (each === field && typeof content === 'bigint' ? [content] : []))[0] ??
  0n

/** The fields of a message (https://protobuf.dev/programming-guides/encoding/): varints as numbers, others as bytes. */
function fieldsOf(message: Buffer): [number, bigint | Buffer][] {
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number) => {
    at += length
    return message.subarray(at - length, at)
  }
  const found: [number, bigint | Buffer][] = []
  while (at < message.length) {
    const key = Number(varint())
    const field = key >> 3
    const type = key & 7
    if (type === 0) found.push([field, varint()])
    else if (type === 1) found.push([field, take(8)])
    else if (type === 2) found.push([field, take(Number(varint()))])
    else if (type === 5) found.push([field, take(4)])
    else throw new Error(`a message has a field of type ${type}`)
  }
  return found
}
