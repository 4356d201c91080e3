import { writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { outcomeOf, type Sent, submission, unansweredMs } from './clients.ts'

/**
 * Many clients, as a process of their own: the test that starts it measures probes meanwhile. It shares the processors with
 * the service, so it does little for each request.
 */

/** The argument, as JSON. */
export type Load = {
  readonly url: string
  readonly token: string
  readonly clients: number
  readonly forMs: number
  /** The wait after an answer that is not 200. */
  readonly comesAgainMs: number
  readonly prefix: string
  /** Gets the list of `Sent`, as JSON. */
  readonly file: string
}

const [asked = ''] = process.argv.slice(2)
const { url, token, clients, forMs, comesAgainMs, prefix, file }: Load = JSON.parse(asked)
const { hostname, port } = new URL(url)
const agent = new Agent({ keepAlive: true, maxSockets: clients })
const [slugMark, contentMark] = ['slug-of-this-one', 'content-of-this-one']
const template = JSON.stringify(submission(slugMark, contentMark))
const options = {
  ...{ agent, hostname, port, method: 'PUT', path: '/api/v3/core/transactional/applications/' },
  timeout: unansweredMs,
}

const log: Sent[] = []
const endsAt = performance.now() + forMs
await Promise.all(Array.from({ length: clients }, (_, index) => client(index)))
writeFileSync(file, JSON.stringify(log))
process.exit(0)

async function client(index: number): Promise<void> {
  // They come within the first second, not in one instant.
  await delay((index / clients) * 1_000)
  for (let times = 0; performance.now() < endsAt; times += 1) {
    const sent = await put(`${prefix}-${index}-${times}`)
    log.push(sent)
    if (sent.status !== 200) await delay(comesAgainMs)
  }
}

function put(slug: string): Promise<Sent> {
  const content = `made for ${slug}`
  const body = Buffer.from(template.replaceAll(slugMark, slug).replace(contentMark, content))
  const sentAt = performance.now()
  return new Promise((resolve) => {
    const end = (status: number | null, text: string) =>
      resolve({ slug, content, outcome: outcomeOf(status, text), status, text, sentAt, ms: performance.now() - sentAt })
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': body.length,
    }
    const sending = request({ ...options, headers }, (answer: IncomingMessage) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
      })
      answer.on('end', () => end(answer.statusCode ?? null, text))
      answer.on('error', (error) => end(null, String(error)))
    })
    sending.on('timeout', () => sending.destroy(new Error('no answer in time')))
    sending.on('error', (error) => end(null, String(error)))
    sending.end(body)
  })
}
