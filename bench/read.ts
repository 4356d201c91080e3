import { Agent, request } from 'node:http'
import { type Load, measure } from './measure.ts'

/** Clients that read one URL repeatedly, as a process. */

export type ReadTask = Load & { readonly url: string; readonly token: string }

const { url, token, ...load }: ReadTask = JSON.parse(process.argv[2] ?? '')
const agent = new Agent({ keepAlive: true, maxSockets: load.clients, scheduling: 'fifo' })
const headers = { authorization: `Bearer ${token}` }

const get = () =>
  new Promise<void>((resolve, reject) => {
    const sent = request(url, { agent, headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve()
        else reject(new Error(`${answer.statusCode} ${Buffer.concat(chunks).toString('utf8').slice(0, 300)}`))
      })
    })
    sent.on('error', reject)
    sent.end()
  })

console.log(JSON.stringify(await measure(load, get)))
agent.destroy()
