import { once } from 'node:events'
import { connect } from 'node:net'

export type Answer = { readonly status: number; readonly body: string }

/** One connection to a server, and one request on it at a time. */
export type Connection = {
  /** @param head the request line and headers, without Host and Content-Length; each line ends in CRLF */
  send(head: string, body: Buffer): Promise<Answer>
  close(): void
}

/**
 * A client that does little: it shares the cores with what it measures, and half of what `node:http` does for a request
 * is for clients that this is none of. It understands answers that tell their length.
 */
export async function openConnection({ hostname, port, host }: URL): Promise<Connection> {
  const socket = connect(Number(port), hostname).setNoDelay().setEncoding('latin1')
  await once(socket, 'connect')
  let read = ''
  let settle: { resolve(answer: Answer): void; reject(error: Error): void } | undefined
  socket.on('data', (chunk: string) => {
    read += chunk
    const answer = answerIn(read)
    if (answer === undefined) return
    read = ''
    settle?.resolve(answer)
  })
  socket.on('error', (error) => settle?.reject(error))
  socket.on('close', () => settle?.reject(new Error('the server closed the connection')))
  return {
    send: (head, body) =>
      new Promise((resolve, reject) => {
        settle = { resolve, reject }
        socket.cork()
        socket.write(`${head}Host: ${host}\r\nContent-Length: ${body.length}\r\n\r\n`)
        socket.write(body)
        socket.uncork()
      }),
    close: () => socket.destroy(),
  }
}

/** @returns undefined while some of it is still to come */
function answerIn(text: string): Answer | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN)
  const body = text.slice(end + 4)
  return body.length < length ? undefined : { status: Number(text.slice(9, 12)), body }
}
