import { expect, test } from 'vitest'
import { freshDatabase } from '../support/database.ts'
import { proxyTo } from '../support/proxy.ts'
import { startStack } from '../api/stack.ts'
const t0 = performance.now()
const say = (...a: unknown[]) => process.stdout.write(`${Math.round(performance.now() - t0)} ${a.map(String).join(' ')}\n`)
test('pg', { timeout: 300000 }, async () => {
  const { url } = await freshDatabase()
  const proxy = await proxyTo(url)
  const stack = await startStack({ databaseUrl: proxy.url, redisUrl: null })
  const look = async (what: string) => { const a = await stack.get('/-/health/ready/'); say(what, Math.round(a.ms), a.status, Object.entries(a.json.checks).map(([k, v]) => `${k}=${v.ok}`).join(' ')) }

  for (let round = 0; round < 3; round++) {
    proxy.freeze(true)
    for (let i = 0; i < 4 + (round % 5); i++) await Promise.all(Array.from({ length: 10 }, () => stack.get('/-/health/ready/')))
    proxy.freeze(false)
    await (async () => { for (;;) { const a = await stack.get('/-/health/ready/'); if (a.json.checks.database.ok) { say('thawed', a.json.checks.queue.ok); return } } })()
    proxy.accept(false); proxy.cut()
    await look("cut")
    proxy.accept(true)
    for (let i = 0; i < 8; i++) { await look('back'); await new Promise((r) => setTimeout(r, 100 * (i > 4 ? 10 : 1))) }
  }
  expect(1).toBe(1)
})
