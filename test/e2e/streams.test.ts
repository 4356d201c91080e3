import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readEvents } from '../support/events.ts'
import { freshFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { run } from '../support/processes.ts'

test('Ctrl-C stops npm start at once while streams of events are open', async () => {
  const [dataDir, port] = [join(freshFolder(), 'data'), await freePort()]
  const server = run('src/standalone/main.ts', { env: { DATA_DIR: dataDir, PORT: String(port), LOG_LEVEL: 'warn' } })
  await server.line(/Ctrl-C stops everything/, { withinMs: 60_000 })
  const token = readFileSync(join(dataDir, 'admin-token'), 'utf8').trim()
  const url = `http://127.0.0.1:${port}/api/v3/blueprints/runs/events/`
  const readers = [await readEvents(url, { token }), await readEvents(url, { token })]
  await readers[0]?.got('worker')
  server.signal('SIGINT')
  expect(await server.exited).toMatchObject({ code: 0 })
  for (const reader of readers) await reader.ended
  expect(server.output()).not.toContain('did not stop in time')
})
