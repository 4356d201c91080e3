import { Agent, request } from 'node:http'
import { type Load, measure } from './measure.ts'
import { submission } from './submission.ts'

/** The clients of the benchmark, as a process: each PUT is an application and a provider that nobody had before. */

export type LoadTask = Load & { readonly url: string; readonly token: string; readonly prefix: string }

const { url, token, prefix, ...load }: LoadTask = JSON.parse(process.argv[2] ?? '')
const agent = new Agent({ keepAlive: true, maxSockets: load.clients, scheduling: 'fifo' })
const mark = 'name-to-replace'
const parts = submission(mark).split(mark)
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }

const put = (name: string) =>
  new Promise<void>((resolve, reject) => {
    const body = Buffer.from(parts.join(name))
    const target = `${url}/api/v3/core/transactional/applications/`
    const sent = request(
      target,
      { method: 'PUT', agent, headers: { ...headers, 'content-length': body.length } },
      (answer) => {
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', (chunk: string) => {
          text += chunk
        })
        answer.on('end', () => {
          if (answer.statusCode === 200 && text.startsWith('{"applied":true')) resolve()
          else reject(new Error(`${answer.statusCode} ${text.slice(0, 300)}`))
        })
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })

console.log(JSON.stringify(await measure(load, (number) => put(`${prefix}-${number}`))))
agent.destroy()
