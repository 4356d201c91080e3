import { once } from 'node:events'
import { connect } from 'node:net'

export type Answer = { readonly status: number; readonly body: string }

/** One connection, with one request at a time. */
export type Connection = {
  /** @param head the request line and headers, without Host and Content-Length; each line ends in CRLF */
  send(head: string, body: Buffer): Promise<Answer>
  close(): void
}

/**
 * A cheap client, because it shares the cores with the measured server. It does less than `node:http`, and understands
 * only answers with a Content-Length.
 */
export async function openConnection({ hostname, port, host }: URL): Promise<Connection> {
  const socket = connect(Number(port), hostname).setNoDelay().setEncoding('latin1')
  await once(socket, 'connect')
  let read = ''
  let pending: { resolve(answer: Answer): void; reject(error: Error): void } | undefined
  socket.on('data', (chunk: string) => {
    read += chunk
    const answer = answerIn(read)
    if (answer === undefined) return
    read = ''
    pending?.resolve(answer)
  })
  socket.on('error', (error) => pending?.reject(error))
  socket.on('close', () => pending?.reject(new Error('the server closed the connection')))
  return {
    send: (head, body) =>
      new Promise((resolve, reject) => {
        pending = { resolve, reject }
        socket.cork()
        socket.write(`${head}Host: ${host}\r\nContent-Length: ${body.length}\r\n\r\n`)
        socket.write(body)
        socket.uncork()
      }),
    close: () => socket.destroy(),
  }
}

/** @returns undefined while the answer is incomplete */
function answerIn(text: string): Answer | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN)
  const body = text.slice(end + 4)
  return body.length < length ? undefined : { status: Number(text.slice(9, 12)), body }
}
