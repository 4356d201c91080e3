import { ROOT_CONTEXT } from '@opentelemetry/api'
import { readServiceConfig } from '../../src/config.ts'
import { connect } from '../../src/db/client.ts'
import { openTracing } from '../../src/tracing/open.ts'
import { inSpan } from '../../src/tracing.ts'

/** Sends statements of three spans over one connection: many, a few, and one that fails. */

const config = readServiceConfig()
const traces = await openTracing('worker', config)
const { db } = connect(config.databaseUrl, { applicationName: 'traced-statements', max: 1 })

const send = (name: string, text: string, count: number) =>
  inSpan(name, {}, ROOT_CONTEXT, async () => {
    for (let sent = 0; sent < count; sent += 1) await db.$queryRawUnsafe(text, 'a-value')
  })

await Promise.all([
  send('many', 'SELECT $1::text AS many', 510),
  send('few', 'SELECT $1::text AS few', 2),
  send('failed', 'SELECT $1::text::int AS failed', 1).catch(() => {}),
])
await db.$disconnect()
await traces.stop()
