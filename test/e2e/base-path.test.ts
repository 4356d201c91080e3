import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase } from '../support/database.ts'
import { applyPath, findProgram, freePort, freshFolder, named, needs, until, wideEnv } from '../support/kit.ts'
import { type Running, run } from '../support/processes.ts'

/** The service below a path, behind nginx: one that passes the path on, and one that cuts it off. */

const base = '/iam'
const token = 'a-token-for-the-first-admin'

const running: Running[] = []

/** @returns the address of each */
async function startNginx(service: number): Promise<Record<'passes' | 'cuts', string>> {
  const folder = freshFolder()
  mkdirSync(join(folder, 'temporary'))
  const [passes, cuts] = [await freePort(), await freePort()]
  const server = (port: number, target: string) => `server {
    listen 127.0.0.1:${port};
    location ${base}/ {
      proxy_pass http://127.0.0.1:${service}${target};
      proxy_set_header Host $http_host;
      proxy_http_version 1.1;
    }
  }`
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/pid; error_log stderr warn; ${process.getuid?.() === 0 ? 'user root;' : ''}
events {}
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/temporary/${name};`).join(' ')}
  ${server(passes, '')}
  ${server(cuts, '/')}
}
`,
  )
  const script = join(folder, 'start.sh')
  writeFileSync(script, `exec ${findProgram('nginx')} -p ${folder} -c ${folder}/nginx.conf`)
  running.push(run(script, { node: '/bin/sh' }))
  const address = (port: number) => `http://127.0.0.1:${port}`
  const answers = (port: number) =>
    fetch(`${address(port)}/`).then(
      ({ status }) => status === 404,
      () => false,
    )
  for (const port of [passes, cuts]) await until('nginx to answer', () => answers(port))
  return { passes: address(passes), cuts: address(cuts) }
}

describe.runIf(needs('nginx'))('below a path', () => {
  let addresses: Record<'passes' | 'cuts', string>
  let direct: string
  beforeAll(async () => {
    const { url } = await freshDatabase()
    const port = await freePort()
    const secrets = { SECRET_KEY: 'a secret key for tests, 32 or more', BOOTSTRAP_TOKEN: token }
    const env = { ...wideEnv, ...secrets, DATABASE_URL: url, PORT: String(port), BASE_PATH: `${base}/` }
    for (const file of ['src/server.ts', 'workers/blueprint.ts']) running.push(run(file, { env }))
    await running[0]?.line(/"serving"/)
    await running[1]?.line(/worker ready/)
    direct = `http://127.0.0.1:${port}`
    addresses = await startNginx(port)
  })

  afterAll(async () => {
    await Promise.all(running.map((each) => each.stop()))
  })

  const bearer = { authorization: `Bearer ${token}` }

  /** Addresses of this host in a page, whatever names them. */
  const addressesIn = (html: string): string[] => [
    ...new Set([...html.matchAll(/\b(?:href|src|action|data-live)="([^"#]*)/g)].flatMap(([, found = '']) => found)),
  ]

  async function login(origin: string): Promise<string> {
    const answer = await fetch(`${origin}${base}/admin/login/?next=${encodeURIComponent(`${base}/admin/runs/`)}`, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ access_token: token }),
    })
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `${base}/admin/runs/`])
    const cookie = answer.headers.get('set-cookie') ?? ''
    expect(cookie).toContain(`Path=${base}/admin;`)
    return cookie.split(';')[0] ?? ''
  }

  describe.each(['passes', 'cuts'] as const)('behind a proxy that %s it', (kind) => {
    test('no page leads out of it, with and without a login', async () => {
      const origin = addresses[kind]
      const cookie = await login(origin)
      const seen = new Set<string>()
      const next = [`${base}/`, `${base}/docs/`, `${base}/nothing/`, `${base}/admin/`, `${base}/admin/queues/`]
      for (let path = next.pop(); path !== undefined; path = next.pop()) {
        if (seen.has(path) || seen.size > 150) continue
        seen.add(path)
        const answer = await fetch(`${origin}${path}`, { headers: { cookie, accept: 'text/html' }, redirect: 'manual' })
        expect(answer.status, path).toBeLessThan(path.includes('nothing') ? 405 : 400)
        const html = (answer.headers.get('content-type') ?? '').includes('html') ? await answer.text() : ''
        const found = addressesIn(html).filter((each) => each.startsWith('/'))
        expect(
          found.filter((each) => !each.startsWith(`${base}/`)),
          path,
        ).toEqual([])
        next.push(...found.map((each) => each.replaceAll('&amp;', '&')), ...locationOf(answer))
      }
      expect([...seen]).toEqual(expect.arrayContaining([`${base}/admin/runs/`, `${base}/docs/page.js`]))
      const logic = await fetch(`${origin}${base}/docs/page.js`)
      expect(await logic.text()).toContain(`'${base}/api/v3/schema/'`)
      const docs = await (await fetch(`${origin}${base}/docs/`)).text()
      expect(addressesIn(docs)).toEqual(expect.arrayContaining([`${base}/`, `${base}/admin/`]))
    })

    test('an apply, its run, a wait for a change and its description', async () => {
      const origin = addresses[kind]
      const runs = (query: string) => fetch(`${origin}${base}/api/v3/blueprints/runs/?${query}`, { headers: bearer })
      const since = (await runs('wait=0')).headers.get('gatewright-revision') ?? ''
      const put = async (headers: Record<string, string>) =>
        fetch(`${origin}${base}${applyPath}`, {
          method: 'PUT',
          headers: { ...bearer, 'content-type': 'application/json', ...headers },
          body: JSON.stringify(await named('oauth2', `below-${kind}`)),
        })
      const applied = await put({})
      expect(await applied.json()).toMatchObject({ applied: true })
      const later = await put({ prefer: 'respond-async' })
      expect(later.status).toBe(202)
      const paths = [applied.headers.get('content-location'), later.headers.get('location')]
      for (const path of paths) {
        expect(path).toMatch(new RegExp(`^${base}/api/v3/blueprints/runs/`))
        expect((await fetch(`${origin}${path}`, { headers: bearer })).status).toBe(200)
      }
      const changed = await runs(`wait=30&since=${encodeURIComponent(since)}`)
      expect(changed.headers.get('gatewright-revision')).not.toBe(since)
      const description = (await (await fetch(`${origin}${base}/api/v3/schema/`)).json()) as {
        servers: { url: string }[]
        paths: object
      }
      expect(description.servers[0]?.url).toBe(base)
      expect(Object.keys(description.paths)).toContain(applyPath)
    })

    test('gatewright', async () => {
      const file = join(freshFolder(), 'app.json')
      writeFileSync(file, JSON.stringify(await named('saml', `cli-${kind}`)))
      for (const args of [['plan', file], ['apply', file], ['logs', '-f'], ['runs']]) {
        const env = { GATEWRIGHT_URL: `${addresses[kind]}${base}`, GATEWRIGHT_TOKEN: token }
        const program = run('bin/gatewright.mjs', { args, env })
        const { code } = await program.exited
        expect([args[0], code, program.output()]).toEqual([args[0], args[0] === 'plan' ? 2 : 0, expect.any(String)])
      }
    })
  })

  test('probes beside the service need not know the path', async () => {
    for (const path of ['/-/health/live/', `${base}/-/health/live/`, '/-/metrics/'])
      expect((await fetch(`${direct}${path}`)).status, path).toBe(200)
  })
})

const locationOf = (answer: Response): string[] => {
  const location = answer.headers.get('location')
  return location === null ? [] : [location]
}
