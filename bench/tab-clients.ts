import { setTimeout as delay } from 'node:timers/promises'

/** Open pages, as a process: each waits for changes and asks for its page as src/dashboard/live.js does. */

export type TabsTask = { readonly url: string; readonly token: string; readonly tabs: number; readonly seconds: number }

/** One answer: when it was there (ms since 1970), how long it took, and the runs on the page. */
export type Seen = { readonly at: number; readonly ms: number; readonly runs: readonly string[] }

/** Pages of one session. */
const mostPages = 8
const leastMs = 1_000

const { url, token, tabs, seconds }: TabsTask = JSON.parse(process.argv[2] ?? '')
const end = AbortSignal.timeout(seconds * 1_000)

async function logIn(): Promise<string> {
  const answer = await fetch(`${url}/admin/login/`, {
    method: 'POST',
    headers: { origin: url },
    body: new URLSearchParams({ access_token: token }),
    redirect: 'manual',
  })
  const [cookie = ''] = (answer.headers.get('set-cookie') ?? '').split(';', 1)
  if (cookie === '') throw new Error(`the login is answered with ${answer.status}`)
  return cookie
}

async function openTab(cookie: string): Promise<Seen[]> {
  const seen: Seen[] = []
  let isWanted = true
  let wake = () => {}
  const listening = listen(cookie, () => {
    isWanted = true
    wake()
  })
  let askedAt = Number.NEGATIVE_INFINITY
  while (!end.aborted) {
    const waitMs = askedAt + leastMs - performance.now()
    if (waitMs > 0) await delay(waitMs)
    if (!isWanted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      await Promise.race([promise, delay(leastMs)])
      continue
    }
    isWanted = false
    askedAt = performance.now()
    const answer = await fetch(`${url}/admin/`, { headers: { accept: 'text/html', cookie } })
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`${answer.status} ${text.slice(0, 300)}`)
    const newest = text.slice(text.indexOf('The last ten runs'))
    const runs = [...newest.matchAll(/\/admin\/runs\/([0-9a-f-]{36})\//g)].map(([, id = '']) => id)
    seen.push({ at: Date.now(), ms: performance.now() - askedAt, runs: [...new Set(runs)] })
  }
  await listening
  return seen
}

/** @param changed is called for each change */
async function listen(cookie: string, changed: () => void): Promise<void> {
  let revision = ''
  while (!end.aborted) {
    const query = new URLSearchParams({ wait: '25', ...(revision !== '' && { since: revision }) })
    const answer = await fetch(`${url}/admin/changes/?${query}`, { headers: { cookie }, signal: end }).catch(
      (error: unknown) => {
        if (!end.aborted) throw error
      },
    )
    if (answer === undefined) return
    if (answer.status !== 200) throw new Error(`changes: ${answer.status}`)
    const found = (await answer.json()) as { revision: string }
    if (found.revision !== revision) changed()
    revision = found.revision
    await delay(leastMs)
  }
}

const cookies = await Promise.all(Array.from({ length: Math.ceil(tabs / mostPages) }, logIn))
const all = await Promise.all(
  Array.from({ length: tabs }, (_, index) => openTab(cookies[Math.floor(index / mostPages)] ?? '')),
)
process.stdout.write(JSON.stringify(all))
