import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { atEnd } from './at-end.ts'
import { chromiumPath } from './needs.ts'

/** A browser context of its own: visitors share no cookies. */
export type Visitor = {
  readonly page: Page
  readonly cookies: BrowserContext['cookies']
  /** What no page may do: break its Content-Security-Policy, throw, ask another host. */
  readonly errors: readonly string[]
  /** Everything that was answered so far, headers included. */
  answers(): Promise<string>
}

const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run']
const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync']

/** A real Chromium, closed at the end of the test file. @param program the headless shell asks for no icon of a page */
export async function openBrowser(program: 'chromium' | 'headlessShell' = 'headlessShell'): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: chromiumPath(program), args: [...flags, ...quiet] })
  atEnd(() => browser.close())
  return browser
}

/** Logs in on the page that is open, which asks a visitor without a session for a token. */
export async function fillLogIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Access token').fill(token)
  await page.getByRole('button', { name: 'Log in' }).click()
}

/** @param origin the one host that pages may ask */
export async function visit(browser: Browser, origin: string, { javaScriptEnabled = true } = {}): Promise<Visitor> {
  const context = await browser.newContext({ javaScriptEnabled, locale: 'en-US', baseURL: origin })
  const page = await context.newPage()
  // Swagger UI needs 4 s of a quiet core, and other files of tests share it.
  page.setDefaultTimeout(30_000)
  const errors: string[] = []
  const answers: Promise<string>[] = []
  page.on('console', (message) => {
    if (message.text().includes('Content Security Policy')) errors.push(message.text())
  })
  page.on('pageerror', (error) => errors.push(String(error)))
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) errors.push(`asked ${request.url()}`)
  })
  page.on('response', (response) => {
    // A redirect has no body, and a page that was closed meanwhile has nothing.
    const parts = [response.allHeaders().catch(() => ({})), response.text().catch(() => '')] as const
    answers.push(Promise.all(parts).then(([headers, text]) => JSON.stringify(headers) + text))
  })
  return {
    page,
    cookies: (urls) => context.cookies(urls),
    errors,
    answers: async () => (await Promise.all(answers)).join('\n'),
  }
}
