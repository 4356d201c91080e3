import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { z } from 'zod'
import manifest from '../../package.json' with { type: 'json' }

/** The Helm chart, held against the rest of the project. `npm run chart` renders it. */

const root = new URL('../../', import.meta.url)
const textOf = (path: string) => readFileSync(new URL(path, root), 'utf8')
const chart = 'charts/gatewright/'

test('it has the version of the service', () => {
  expect(load(textOf(`${chart}Chart.yaml`))).toMatchObject({ version: manifest.version, appVersion: manifest.version })
})

test('the board and the alerts are the files of the documentation', () => {
  const files = readdirSync(new URL(`${chart}files/`, root))
  expect(files.sort()).toEqual(['grafana-board.json', 'prometheus-alerts.yml'])
  for (const name of files)
    expect(readlinkSync(new URL(`${chart}files/${name}`, root))).toBe(`../../../docs/snippets/${name}`)
})

const page = textOf('docs/settings.md')
const [pods = ''] = page.split('\n## The program')
const table = [...pods.matchAll(/^\| `([A-Z_]+)`( \*)? \|/gm)].map(([, name = '', mark]) => ({
  name,
  isSecret: !!mark,
}))

const valuesSchema = z.object({
  properties: z.object({ settings: z.object({ propertyNames: z.object({ enum: z.array(z.string()) }) }) }),
})

test('`settings` takes each setting that is no secret, and that the chart does not set itself', () => {
  const schema = valuesSchema.parse(JSON.parse(textOf(`${chart}values.schema.json`)))
  const taken = schema.properties.settings.propertyNames.enum
  const own = ['PORT', 'HOST', 'DATA_DIR', 'METRICS_PORT', 'WORKER_METRICS_PORT', 'WORKER_METRICS_HOST', 'DRAIN_MS']
  const free = table.filter(({ name, isSecret }) => !isSecret && !own.includes(name)).map(({ name }) => name)
  expect(taken.filter((name) => table.some((row) => row.name === name)).sort()).toEqual(free.sort())
  // Those that the packages of OpenTelemetry read stand below the table.
  for (const name of taken.filter((each) => !free.includes(each))) {
    const [, rest = ''] = /^OTEL_EXPORTER_OTLP(_\w+)$/.exec(name) ?? []
    expect([name, page.includes(`\`${name}\``) || page.includes(`\`${rest}\``)]).toEqual([name, true])
  }
})

test('each secret is a setting that a file may hold', () => {
  const [, block = ''] =
    /"gatewright\.secretSettings" -}}\n([\s\S]*?)\{\{- end/.exec(textOf(`${chart}templates/_pod.tpl`)) ?? []
  const names = Object.keys(z.record(z.string(), z.string()).parse(load(block)))
  const secrets = [...page.matchAll(/^\| `([A-Z_]+)` \* \|/gm)].map(([, name = '']) => name)
  expect(names.sort()).toEqual([...new Set(secrets)].filter((name) => !/^GATEWRIGHT_(ID_)?TOKEN$/.test(name)).sort())
})
