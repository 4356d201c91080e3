import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { randomText } from '../../src/ids.ts'
import { type Answer, applyPath } from '../support/asker.ts'
import { everything } from '../support/contents.ts'
import {
  type Body,
  example,
  type Installation,
  installation,
  type Kind,
  kinds,
  type QueueKind,
} from '../support/installation.ts'
import { needs } from '../support/needs.ts'

/** A secret that is like no other text, in every secret member of a kind; then everything is searched for it. */
function withCanary({ app, provider_model, provider }: Body, there: Installation): { body: Body; canary: string } {
  const canary = `canary${randomText(30)}`
  const members = [...(there.engine.registry.byName(provider_model)?.members.values() ?? [])].filter(
    ({ secret }) => secret,
  )
  const secrets = members.map(({ name, schema }) => [
    name,
    schema.safeParse(canary).success ? canary : { deep: [{ inside: canary }] },
  ])
  return { canary, body: { app, provider_model, provider: { ...provider, ...Object.fromEntries(secrets) } } }
}

const secretive: readonly Kind[] = kinds.filter((kind) => !['ldap', 'proxy', 'rac', 'saml'].includes(kind))

async function redisContents(url: string | null): Promise<string> {
  if (url === null) return ''
  const redis = new Redis(url)
  try {
    const readers: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
      string: (key) => redis.get(key),
      hash: (key) => redis.hgetall(key),
      list: (key) => redis.lrange(key, 0, -1),
      set: (key) => redis.smembers(key),
      zset: (key) => redis.zrange(key, '0', '-1'),
      stream: (key) => redis.xrange(key, '-', '+'),
    }
    const texts: string[] = []
    for (const key of await redis.keys('*'))
      texts.push(key, JSON.stringify(await readers[await redis.type(key)]?.(key)) ?? '')
    return texts.join('\n')
  } finally {
    redis.disconnect()
  }
}

function claims(queue: QueueKind): void {
  test('a secret stands nowhere: in no table, key, log line or answer', { timeout: 30_000 }, async () => {
    const there = await installation({ queue })
    const answers: Answer[] = []
    const canaries: string[] = []
    const ask = async (answer: Promise<Answer>) => {
      answers.push(await answer)
      return answer
    }
    for (const kind of secretive) {
      const { body, canary } = withCanary(await example(kind), there)
      canaries.push(canary)
      const made = await ask(there.admin.put(applyPath, body))
      expect(made).toMatchObject({ status: 200, json: { applied: true } })
      await ask(there.admin.get(made.headers['content-location'] ?? ''))
      // Told again, changed, refused in each way, and failed: none of it may speak.
      const other = withCanary(body, there)
      canaries.push(other.canary)
      await ask(there.admin.put(applyPath, body))
      await ask(there.admin.put(applyPath, other.body))
      await ask(there.admin.put(applyPath, body, { ifNoneMatch: '*' }))
      await ask(there.admin.put(applyPath, { ...body, app: { ...body.app, slug: 'no slug' } }))
      await ask(there.admin.put(applyPath, { ...body, provider: { ...body.provider, x: canary } }))
      await ask(there.admin.put(applyPath, `${JSON.stringify(body)}${canary}`))
      await ask(there.admin.put(`${applyPath}?dry_run=${canary}`, body))
      await ask(there.as(canary).put(applyPath, body))
    }
    expect(answers.map(({ status }) => status)).toEqual(
      secretive.flatMap(() => [200, 200, 200, 200, 412, 400, 400, 400, 400, 401]),
    )
    const stores = {
      tables: await everything(there.db),
      redis: await redisContents(there.redisUrl),
      log: there.log.join('\n'),
      answers: JSON.stringify(answers),
    }
    expect(stores.tables).toContain('sentry-accounts')
    expect(stores.log).toContain('answered')
    if (queue === 'redis') expect(stores.redis).toContain('apply oauth2 grafana')
    for (const [store, contents] of Object.entries(stores)) {
      const found = canaries.filter((canary) => contents.includes(canary))
      expect({ store, found }).toEqual({ store, found: [] })
    }
  })

  test('neither do values that the service made up, nor the access token, save where their owner asks', async () => {
    const there = await installation({ queue })
    const user = await there.make.user({ superuser: true })
    const body = await example('oauth2', { provider: { client_id: undefined, client_secret: undefined } })
    const made = await user.put(applyPath, body)
    const run = await user.get(made.headers['content-location'] ?? '')
    const secret = (run.json as { generated: { provider: { client_secret: string } } }).generated.provider.client_secret
    expect(secret).toMatch(/^\w{128}$/)
    const stores = [await everything(there.db), await redisContents(there.redisUrl), there.log.join('\n'), made.text]
    for (const contents of stores) {
      expect(contents).not.toContain(secret)
      expect(contents).not.toContain(user.token)
    }
  })

  test('a job says which run it is for, and nothing else', async () => {
    const there = await installation({ queue })
    await there.admin.put(applyPath, await example('scim'))
    const jobs = await there.queue.getJobs()
    const run = await there.db.prisma.run.findFirstOrThrow()
    expect(jobs.map(({ id, name, data }) => ({ id, name, data }))).toEqual([
      { id: `run-${run.id}-1`, name: 'apply scim sentry-accounts', data: { run: run.id } },
    ])
  })
}

describe("with the queue on PostgreSQL's", () => claims('postgres'))
describe.runIf(needs('redis-server'))('with the queue on Redis', () => claims('redis'))
