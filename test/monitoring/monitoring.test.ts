import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startStack } from '../api/stack.ts'
import { example, exited, freePort, freshDatabase, freshFolder, installation, needs, until } from '../support/kit.ts'
import { namesIn, promtool } from '../support/metrics.ts'
import { raw, rows, sql } from '../support/sql.ts'

/** What is shipped for Prometheus and Grafana, held against scrapes of real processes. */

const textOf = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const rulesFile = 'docs/snippets/prometheus-alerts.yml'

const ruleSchema = z.strictObject({
  alert: z.string().regex(/^Gatewright[A-Z]\w+$/),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.strictObject({ severity: z.enum(['page', 'ticket']) }),
  annotations: z.strictObject({ summary: z.string(), runbook: z.string() }),
})
const rulesSchema = z.object({ groups: z.array(z.object({ name: z.string(), rules: z.array(ruleSchema) })) })
const { groups } = rulesSchema.parse(load(textOf(rulesFile)))
const rules = groups.flatMap((group) => group.rules)

const testsSchema = z.object({
  tests: z.array(
    z.object({ alert_rule_test: z.array(z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()) })) }),
  ),
})
const testFiles = ['test/monitoring/alerts.yml', 'test/monitoring/alerts-of-days.yml']
const claims = testFiles
  .flatMap((file) => testsSchema.parse(load(textOf(file))).tests)
  .flatMap((each) => each.alert_rule_test)

const panelSchema = z.object({
  title: z.string(),
  type: z.string(),
  gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
  targets: z.array(z.object({ expr: z.string() })).optional(),
})
const board = z
  .object({ panels: z.array(panelSchema), templating: z.object({ list: z.array(z.object({ name: z.string() })) }) })
  .parse(JSON.parse(textOf('docs/snippets/grafana-board.json')))
const expressions = board.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))

/** Metrics that an expression names. Functions and labels have other names. */
const metricsIn = (expr: string) => [...new Set(expr.match(/\b(?:gatewright|process|nodejs)_\w+\b/g))]

/** Scrapes of an API and a worker that have had something to do. */
let scraped: { api: string; worker: string }
beforeAll(async () => {
  const { url, db } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null })
  const port = await freePort()
  const worker = await stack.startWorker({ WORKER_METRICS_PORT: String(port) })
  expect((await stack.put(await example('saml'))).status).toBe(200)
  const { pk } = await db.user.findFirstOrThrow()
  await db.token.create({
    data: {
      ...{ pk: crypto.randomUUID(), identifier: 'expires', intent: 'api', userPk: pk, keyHash: new Uint8Array(32) },
      expires: new Date(Date.now() + 86_400_000),
    },
  })
  const api = await until('all gauges', async () => {
    const { text } = await stack.get('/-/metrics/')
    const names = namesIn(text)
    const isWhole = ['last_consumption', 'next_expiry'].every((name) =>
      names.has(`gatewright_${name}_timestamp_seconds`),
    )
    return isWhole && names.has('gatewright_running_runs') && names.has('gatewright_ledger_bytes') ? text : null
  })
  scraped = { api, worker: await (await fetch(`http://127.0.0.1:${port}/-/metrics/`)).text() }
  await worker.stop()
})

/** Names with `_bucket` and the like for each sample; those of the metrics themselves. */
const metricNames = (text: string) => [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name)

describe('the alerts', () => {
  test('name metrics that a scrape of the API has', () => {
    const there = namesIn(scraped.api)
    const missing = rules.flatMap(({ alert, expr }) =>
      metricsIn(expr)
        .filter((name) => !there.has(name))
        .map((name) => `${alert}: ${name}`),
    )
    expect(rules.length).toBeGreaterThan(12)
    expect(rules.flatMap(({ expr }) => metricsIn(expr)).length).toBeGreaterThan(15)
    expect(missing).toEqual([])
  })

  test('have a runbook each in docs/incidents.md: what you see, what it means, what to do', () => {
    const [, chapter = ''] = textOf('docs/incidents.md').split('\n## Alerts\n')
    const [own = ''] = chapter.split('\n## ')
    const runbooks = own.split('\n### ').slice(1)
    const headed = runbooks.map((text) => text.split('\n', 1)[0])
    expect(headed).toEqual(rules.map(({ alert }) => alert))
    for (const { alert, annotations } of rules)
      expect(annotations.runbook).toBe(`docs/incidents.md#${alert.toLowerCase()}`)
    for (const text of runbooks)
      expect([...text.matchAll(/^\*\*(.+?)\*\*(?= |$)/gm)].map(([, part]) => part)).toEqual([
        'You see',
        'It means',
        'Do',
      ])
  })

  test('have runbooks whose statements and requests work', async () => {
    const [, chapter = ''] = textOf('docs/incidents.md').split('\n## Alerts\n')
    const [own = ''] = chapter.split('\n## ')
    const statements = [...own.matchAll(/"(SELECT [^"]+)"|`(SELECT (?!pg_terminate)[^`]+)`/g)].map(
      ([, one, other]) => one ?? other,
    )
    const paths = [...own.matchAll(/`GET (\/[^`]+)`/g)].map(([, path = '']) => path)
    expect([statements.length, paths.length]).toEqual([3, 1])
    const there = await installation({ workers: 'none' })
    for (const text of statements) await rows(there.db, sql`${raw(text ?? '')}`)
    for (const path of paths) expect(await there.admin.get(path)).toMatchObject({ status: 200 })
  })

  test('have a case each in which they fire, and one in which they do not', () => {
    const firing = (yes: boolean) =>
      [
        ...new Set(claims.filter(({ exp_alerts }) => exp_alerts.length > 0 === yes).map(({ alertname }) => alertname)),
      ].sort()
    const names = rules.map(({ alert }) => alert).sort()
    expect(firing(true)).toEqual(names)
    expect(firing(false)).toEqual(names)
  })
})

describe('the board', () => {
  test('names metrics that a scrape of an API or a worker has', () => {
    const there = new Set([...namesIn(scraped.api), ...namesIn(scraped.worker)])
    const missing = expressions.flatMap(({ title, expr }) =>
      metricsIn(expr)
        .filter((name) => !there.has(name))
        .map((name) => `${title}: ${name}`),
    )
    expect(expressions.length).toBeGreaterThan(30)
    expect(missing).toEqual([])
  })

  test('shows each metric of this product', () => {
    const shown = new Set(
      expressions.flatMap(({ expr }) => metricsIn(expr)).map((name) => name.replace(/_bucket$/, '')),
    )
    const own = [...metricNames(scraped.api), ...metricNames(scraped.worker)].filter((name) =>
      /^gatewright_/.test(name),
    )
    expect(own.length).toBeGreaterThan(30)
    expect(own.filter((name) => !shown.has(name))).toEqual([])
  })

  test('has no panel over another, and no variable that is not there', () => {
    const cells = board.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)}/${y + Math.floor(index / w)}`),
    )
    expect(cells.length - new Set(cells).size).toBe(0)
    expect(board.panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true)
    const known = [...board.templating.list.map(({ name }) => name), '__rate_interval']
    const used = expressions.flatMap(({ expr }) => [...expr.matchAll(/\$(\w+)/g)].map(([, name = '']) => name))
    expect([...new Set(used)].filter((name) => !known.includes(name))).toEqual([])
  })
})

test('docs/monitoring.md lists each metric of this product, with its labels, and no other', () => {
  const listed = [...textOf('docs/monitoring.md').matchAll(/^\| `(gatewright_\w+)` \| (.*?) ?\| .+ \|$/gm)].map(
    ([, name = '', labels = '']) => [name, labels.replaceAll('`', '').split(', ').filter(Boolean).sort().join()],
  )
  const labelsOf = (name: string, text: string) => {
    const sample = new RegExp(`^${name}(?:_bucket)?\\{(.*?)\\} `, 'm').exec(text)
    return [...(sample?.[1] ?? '').matchAll(/(\w+)="/g)]
      .flatMap(([, label = '']) => (label === 'le' ? [] : [label]))
      .sort()
      .join()
  }
  const text = `${scraped.api}\n${scraped.worker}`
  const own = [...new Set(metricNames(text).filter((name) => /^gatewright_/.test(name)))]
  expect(new Map(listed.map(([name = '', labels = '']) => [name, labels]))).toEqual(
    new Map(own.map((name) => [name, labelsOf(name, text)])),
  )
})

describe.runIf(needs('promtool'))('promtool', () => {
  test('accepts the alerts, the scrape configuration, and what each alert is said to do', async () => {
    const checked = await promtool(['check', 'config', 'prometheus.yml'], { cwd: 'docs/snippets' })
    expect(checked).toMatchObject({ code: 0, output: expect.stringContaining(`SUCCESS: ${rules.length} rules found`) })
    await exited(0, promtool(['test', 'rules', ...testFiles]))
  })

  test('accepts each expression of the board as a recording rule', async () => {
    const folder = freshFolder()
    const filled = (expr: string) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', 'gatewright')
    const recorded = expressions.map(({ expr }, index) => ({ record: `board:${index}`, expr: filled(expr) }))
    const file = join(folder, 'board.json')
    // JSON is YAML.
    await writeFile(file, JSON.stringify({ groups: [{ name: 'board', rules: recorded }] }))
    await exited(0, promtool(['check', 'rules', file]), `SUCCESS: ${expressions.length} rules found`)
  })

  test('would refuse a mistake', async () => {
    const file = join(freshFolder(), 'wrong.json')
    await writeFile(file, JSON.stringify({ groups: [{ name: 'x', rules: [{ record: 'x:y', expr: 'sum by (x' }] }] }))
    expect((await promtool(['check', 'rules', file])).code).not.toBe(0)
  })
})
