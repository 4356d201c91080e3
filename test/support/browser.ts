import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { atEnd } from './at-end.ts'
import { chromiumPath } from './needs.ts'

/** Somebody with a browser of his own: no cookie is shared with others. */
export type Visitor = {
  readonly page: Page
  readonly cookies: BrowserContext['cookies']
  /** What no page may do: break its own Content-Security-Policy, throw, ask another host. */
  readonly faults: readonly string[]
  /** Everything that was answered so far, headers included. */
  answers(): Promise<string>
}

const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run']
const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync']

/** A real Chromium, closed at the end of the test file. */
export async function openBrowser(): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: [...flags, ...quiet] })
  atEnd(() => browser.close())
  return browser
}

/** @param origin the one host that pages may ask */
export async function visit(browser: Browser, origin: string, { javaScriptEnabled = true } = {}): Promise<Visitor> {
  const context = await browser.newContext({ javaScriptEnabled, locale: 'en-US', baseURL: origin })
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  const faults: string[] = []
  const answers: Promise<string>[] = []
  page.on('console', (message) => {
    if (message.text().includes('Content Security Policy')) faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`asked ${request.url()}`)
  })
  page.on('response', (response) => {
    // A redirect has no body.
    const body = response.text().catch(() => '')
    answers.push(Promise.all([response.allHeaders(), body]).then(([headers, text]) => JSON.stringify(headers) + text))
  })
  return {
    page,
    cookies: (urls) => context.cookies(urls),
    faults,
    answers: async () => (await Promise.all(answers)).join('\n'),
  }
}
