import { Client } from 'pg'
import { atEnd } from './at-end.ts'

/** The payloads of notifications on a channel from now on. */
export async function listen(url: string, channel: string): Promise<readonly string[]> {
  const heard: string[] = []
  const client = new Client({ connectionString: url })
  client.on('notification', ({ payload = '' }) => heard.push(payload))
  await client.connect()
  atEnd(() => client.end())
  await client.query(`LISTEN ${channel}`)
  return heard
}
