/**
 * A metric that counts runs: its values are sums in a table, or those of one process without the web server. Labels are closed
 * sets: never a slug, a user or an id.
 */
export type Metric = {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  /** The series that stand at 0 before anything was counted: an alert on an increase misses a series that begins at 1. */
  readonly fromZero: readonly (readonly string[])[]
  /** The upper bounds of a histogram, in seconds. A histogram has no labels of its own. */
  readonly buckets?: readonly number[]
}

/** Counts by `seriesOf`. */
export type Counts = ReadonlyMap<string, number>

/** The key under which a count is kept: the name and the values of the labels. */
export const seriesOf = (metric: Pick<Metric, 'name'>, ...values: readonly string[]): string =>
  [metric.name, ...values].join(' ')

/** What an observation adds to a histogram. */
export function observed(metric: Metric, value: number): [series: string, by: number][] {
  const bound = metric.buckets?.find((each) => value <= each)
  return [
    [seriesOf(metric, bound === undefined ? '+Inf' : String(bound)), 1],
    [seriesOf(metric, 'sum'), value],
  ]
}

/** Writes the metrics in the text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/). */
export const inTextFormat = (metrics: readonly Metric[], counts: Counts): string =>
  metrics.map((metric) => `${head(metric)}${linesOf(metric, counts).join('\n')}\n`).join('\n')

const head = ({ name, help, buckets }: Metric): string =>
  `# HELP ${name} ${help}\n# TYPE ${name} ${buckets === undefined ? 'counter' : 'histogram'}\n`

function linesOf(metric: Metric, counts: Counts): string[] {
  const { name, labels, fromZero, buckets } = metric
  if (buckets !== undefined) return histogramLines(name, buckets, counts)
  const counted = [...counts.keys()].flatMap((key) => {
    const [of, ...values] = key.split(' ')
    return of === name && values.length === labels.length ? [key] : []
  })
  const series = new Set([...fromZero.map((values) => seriesOf(metric, ...values)), ...counted])
  return [...series].map((key) => {
    const [, ...values] = key.split(' ')
    const pairs = labels.map((label, index) => `${label}="${values[index]}"`).join(',')
    return `${name}${pairs === '' ? '' : `{${pairs}}`} ${counts.get(key) ?? 0}`
  })
}

function histogramLines(name: string, buckets: readonly number[], counts: Counts): string[] {
  const count = (part: string) => counts.get(seriesOf({ name }, part)) ?? 0
  let total = 0
  const lines = [...buckets.map(String), '+Inf'].map((bound) => {
    total += count(bound)
    return `${name}_bucket{le="${bound}"} ${total}`
  })
  return [...lines, `${name}_sum ${count('sum')}`, `${name}_count ${total}`]
}
