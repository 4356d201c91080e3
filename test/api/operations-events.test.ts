import { beforeAll, describe, expect } from 'vitest'
import { streamLimits } from '../../src/events/streams.ts'
import { applyPath } from '../support/asker.ts'
import { adminToken } from '../support/engine.ts'
import { readEvents } from '../support/events.ts'
import { type Installation, installation, named } from '../support/installation.ts'
import { claimsOf } from '../support/operations.ts'
import { until } from '../support/until.ts'

/** docs/operations.md on streams of events, held against the running system. */

let there: Installation
let url: string
beforeAll(async () => {
  there = await installation({ streams: { commentMs: 100 } })
  url = await there.app.listen({ port: 0, host: '127.0.0.1' })
})

const follow = (lastEventId?: string) =>
  readEvents(`${url}/api/v3/blueprints/runs/events/`, { token: adminToken, ...(lastEventId && { lastEventId }) })

const shows = claimsOf(['Events come late, or their stream breaks off'])

describe('Events come late, or their stream breaks off', () => {
  shows(
    [
      'A stream of [events](api.md#events) sends a comment every 15 s: a proxy must wait longer than that between two bytes.',
      'Each answer has `X-Accel-Buffering: no`, which nginx obeys; switch buffering and compression off in another proxy, for `/api/v3/blueprints/runs/` and `/admin/events/`.',
    ],
    async () => {
      expect(streamLimits.commentMs).toBe(15_000)
      const reader = await follow()
      await until(() => reader.comments() > 1, { what: 'two comments' })
      expect(reader.headers.get('x-accel-buffering')).toBe('no')
      expect(reader.headers.get('content-encoding')).toBeNull()
      reader.close()
    },
  )

  shows(['A client that comes back goes on behind the last event that it has read.'], async () => {
    const reader = await follow()
    await there.admin.put(applyPath, await named('radius', 'before'))
    await reader.got('ended')
    reader.close()
    await there.admin.put(applyPath, await named('radius', 'missed'))
    const again = await follow(reader.lastId())
    const [ended] = (await again.got('ended')).toReversed()
    expect(ended?.data.slug).toBe('missed')
    again.close()
  })

  shows(['When the API stops, its streams end at once, and clients come back after 2 s.'], async () => {
    const other = await installation({ workers: 'none' })
    const address = await other.app.listen({ port: 0, host: '127.0.0.1' })
    const response = await fetch(`${address}/api/v3/blueprints/runs/events/`, {
      headers: { authorization: `Bearer ${adminToken}` },
    })
    const [text] = await Promise.all([response.text(), other.app.close()])
    expect(text).toMatch(/^id: \d+-\d+\nretry: 2000\n\n/)
  })
})
