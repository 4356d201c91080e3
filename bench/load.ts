import { openConnection } from './connection.ts'
import { type Load, measure } from './measure.ts'
import { submission } from './submission.ts'

/** The clients of the benchmark, as a process: each PUT is of an application and a provider. */

export type LoadTask = Load & {
  readonly url: string
  readonly token: string
  readonly prefix: string
  /** `apply` and `plan` create, with a new name each time; `again` sends one name each time. `apply` when not given. */
  readonly what?: 'apply' | 'plan' | 'again'
}

const { url, token, prefix, what = 'apply', ...load }: LoadTask = JSON.parse(process.argv[2] ?? '')
const mark = 'name-to-replace'
const parts = submission(mark).split(mark)
const query = what === 'plan' ? '?dry_run=true' : ''
const head = `PUT /api/v3/core/transactional/applications/${query} HTTP/1.1\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`
const connections = await Promise.all(Array.from({ length: load.clients }, () => openConnection(new URL(url))))
const free = [...connections]

async function put(name: string): Promise<void> {
  const connection = free.pop()
  if (connection === undefined) throw new Error('there are more clients than connections')
  const { status, body } = await connection.send(head, Buffer.from(parts.join(name)))
  free.push(connection)
  if (status !== 200 || !body.startsWith(`{"applied":${what !== 'plan'}`))
    throw new Error(`${status} ${body.slice(0, 300)}`)
}

console.log(JSON.stringify(await measure(load, (number) => put(what === 'again' ? prefix : `${prefix}-${number}`))))
for (const connection of connections) connection.close()
