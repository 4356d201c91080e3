import { expect, test } from 'vitest'
import { inTextFormat, observed, seriesOf } from '../src/series.ts'

/** Counts in the text format of Prometheus. */

const counter = { name: 'x_total', help: 'Counts.', labels: ['a', 'b'], fromZero: [['1', '2']] }
const plain = { name: 'y_total', help: 'Counts.', labels: [], fromZero: [[]] }
const histogram = { name: 'z_seconds', help: 'Times.', labels: [], fromZero: [], buckets: [0.1, 1] }

test('a counter shows the series that begin at 0, and what was counted', () => {
  const counts = new Map([
    [seriesOf(counter, '1', '3'), 4],
    // Another version has other labels.
    [seriesOf(counter, '1'), 5],
    [seriesOf({ name: 'other_total' }, '1', '2'), 6],
  ])
  expect(inTextFormat([counter, plain], counts)).toBe(`# HELP x_total Counts.
# TYPE x_total counter
x_total{a="1",b="2"} 0
x_total{a="1",b="3"} 4

# HELP y_total Counts.
# TYPE y_total counter
y_total 0
`)
})

test('a histogram adds up its buckets', () => {
  const counts = new Map<string, number>()
  for (const value of [0.05, 0.1, 0.5, 7])
    for (const [series, by] of observed(histogram, value)) counts.set(series, (counts.get(series) ?? 0) + by)
  expect(inTextFormat([histogram], counts)).toBe(`# HELP z_seconds Times.
# TYPE z_seconds histogram
z_seconds_bucket{le="0.1"} 2
z_seconds_bucket{le="1"} 3
z_seconds_bucket{le="+Inf"} 4
z_seconds_sum 7.65
z_seconds_count 4
`)
})
