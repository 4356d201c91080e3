import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { randomText } from '../../src/ids.ts'
import { type Answer, applied, applyPath } from '../support/asker.ts'
import { type Body, example, type Kind, kinds } from '../support/examples.ts'
import { everything, type Installation, installation, needs, type QueueKind } from '../support/kit.ts'

/** Puts a unique secret into every secret field of a kind. The test then searches all data for it. */
function withMarker({ app, provider_model, provider }: Body, there: Installation): { body: Body; marker: string } {
  const marker = `marker${randomText(30)}`
  const members = [...(there.engine.registry.byName(provider_model)?.fields.values() ?? [])].filter(
    ({ secret }) => secret,
  )
  const secrets = members.map(({ name, schema }) => [
    name,
    schema.safeParse(marker).success ? marker : { deep: [{ inside: marker }] },
  ])
  expect(secrets).not.toEqual([])
  return { marker, body: { app, provider_model, provider: { ...provider, ...Object.fromEntries(secrets) } } }
}

const secretive: readonly Kind[] = kinds.filter((kind) => !['ldap', 'proxy', 'saml'].includes(kind))

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
  test('a secret is shown nowhere: in no table, key, log line or answer', async () => {
    const there = await installation({ queue })
    const answers: Answer[] = []
    const markers: string[] = []
    const ask = async (answer: Promise<Answer>) => {
      answers.push(await answer)
      return answer
    }
    for (const kind of secretive) {
      const { body, marker } = withMarker(await example(kind), there)
      markers.push(marker)
      const made = await applied(ask(there.admin.put(applyPath, body)))
      await ask(there.admin.get(made.run))
      // Applied again, changed, refused in each way, and failed: none of it may show the secret.
      const other = withMarker(body, there)
      markers.push(other.marker)
      await ask(there.admin.put(applyPath, body))
      await ask(there.admin.put(applyPath, other.body))
      await ask(there.admin.put(applyPath, body, { ifNoneMatch: '*' }))
      await ask(there.admin.put(applyPath, { ...body, app: { ...body.app, slug: 'no slug' } }))
      await ask(there.admin.put(applyPath, { ...body, provider: { ...body.provider, x: marker } }))
      await ask(there.admin.put(applyPath, `${JSON.stringify(body)}${marker}`))
      await ask(there.admin.put(`${applyPath}?dry_run=${marker}`, body))
      await ask(there.as(marker).put(applyPath, body))
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
      const found = markers.filter((marker) => contents.includes(marker))
      expect({ store, found }).toEqual({ store, found: [] })
    }
  })

  test('generated values and the access token are shown only to their owner', async () => {
    const there = await installation({ queue })
    const user = await there.make.user({ superuser: true })
    const body = await example('oauth2', { provider: { client_id: undefined, client_secret: undefined } })
    const made = await user.put(applyPath, body)
    const run = await user.get(made.run)
    const secret = (run.json as { generated: { provider: { client_secret: string } } }).generated.provider.client_secret
    expect(secret).toMatch(/^\w{128}$/)
    const stores = [await everything(there.db), await redisContents(there.redisUrl), there.log.join('\n'), made.text]
    for (const contents of stores) {
      expect(contents).not.toContain(secret)
      expect(contents).not.toContain(user.token)
    }
  })

  test('a job names its run, and nothing else', async () => {
    const there = await installation({ queue })
    await there.admin.put(applyPath, await example('scim'))
    const jobs = await there.queue.getJobs()
    const run = await there.db.run.findFirstOrThrow()
    expect(jobs.map(({ id, name, data }) => ({ id, name, data }))).toEqual([
      { id: `run-${run.id}-1`, name: 'apply scim sentry-accounts', data: { run: run.id } },
    ])
  })
}

describe("with the queue on PostgreSQL's", () => claims('postgres'))
describe.runIf(needs('redis-server'))('with the queue on Redis', () => claims('redis'))
