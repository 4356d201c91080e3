import { type Html, html } from '../../http/html.ts'
import { type Figures, type Period, periods } from '../../lists/run-figures.ts'
import type { Quantiles } from '../../lists/run-sums.ts'
import { type Outcome, outcomes } from '../../runs/outcome.ts'
import { nowPath } from '../addresses.ts'
import { table } from '../table.ts'
import { duration, number, shortTime } from '../words.ts'
import { timesPlots } from './times-plot.ts'

/** Stacked bars of outcomes, and lines of times: SVG that the server draws, with the same numbers in tables. */

const width = 720
const height = 120
const gap = 1
/** The least height of a bar: one failure among thousands is visible. */
const leastHeight = 3

/** The order of the bars from the ground up: outcomes that need attention are on top. */
const stacked: readonly Outcome[] = ['applied', 'unchanged', 'unknown', 'cancelled', 'refused', 'failed']

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0)

const periodWords: Readonly<Record<Period, string>> = {
  hour: 'Last hour',
  day: 'Last day',
  week: 'Last week',
  month: 'Last month',
  year: 'Last year',
}

export function plot(figures: Figures, period: Period): Html {
  const { bars, from, times } = figures
  const { steps, stepS } = periods[period]
  const totals = new Map(
    outcomes.map((each) => [each, sumOf(bars.filter(({ outcome }) => outcome === each).map(({ runs }) => runs))]),
  )
  const stepOf = ({ at }: { readonly at: Date }) => Math.round((at.getTime() - from.getTime()) / 1_000 / stepS)
  const byStep = Map.groupBy(bars, stepOf)
  const timesByStep = new Map(figures.steps.map((each) => [stepOf(each), each]))
  const highest = highestOf(byStep)
  const all = sumOf([...totals.values()])
  const said = outcomes.flatMap((each) => (totals.get(each) ? [`${totals.get(each)} ${each}`] : [])).join(', ')
  return html`<nav class="tabs" aria-label="Period"><ul>${(Object.keys(periods) as Period[]).map(
    (each) =>
      html`<li><a href="${nowPath}${each !== 'hour' && `?period=${each}`}"${each === period && html` aria-current="true"`}>${periodWords[each]}</a></li>`,
  )}</ul></nav>
<div class="plot">
<div class="figures">
<figure>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="Submissions by outcome: ${all === 0 ? 'none' : said}">
${patterns}
<line class="ground" x1="0" x2="${width}" y1="${height - 0.5}" y2="${height - 0.5}"/>
${barPaths(byStep, steps)}
</svg>
<figcaption><span>${shortTime(from)}</span><span>${duration(stepS * 1_000)} a bar, the highest ${number(highest)}</span><span>now</span></figcaption>
</figure>
${timesPlots(figures, { from, stepS, steps })}
</div>
<div>${table(
    `Submissions of the ${periodWords[period].toLowerCase()}`,
    { Outcome: 'plain', Runs: 'number' },
    outcomes.map((each) => ({
      cells: [html`<span class="key">${swatch(each)}${outcomeWords[each]}</span>`, number(totals.get(each) ?? 0)],
    })),
  )}
${table('Times', { Time: 'plain', p50: 'number', p99: 'number' }, [
  { cells: ['In the queue', ...quantiles(times.queueMs)] },
  { cells: ['At work', ...quantiles(times.workMs)] },
])}</div>
</div>
<details id="bars"><summary>Each bar as a row</summary>
${table(
  'Submissions, bar by bar',
  { From: 'plain', ...Object.fromEntries([...outcomes, ...timeHeads].map((head) => [head, 'number' as const])) },
  [...byStep].map(([step, found]) => ({
    cells: [
      shortTime(new Date(from.getTime() + step * stepS * 1_000)),
      ...outcomes.map((each) => found.find(({ outcome }) => outcome === each)?.runs ?? ''),
      ...quantiles(timesByStep.get(step)?.queueMs ?? null, ''),
      ...quantiles(timesByStep.get(step)?.workMs ?? null, ''),
    ],
  })),
)}</details>`
}

const outcomeWords: Readonly<Record<Outcome, string>> = {
  applied: 'applied',
  unchanged: 'unchanged',
  refused: 'refused',
  failed: 'failed',
  cancelled: 'cancelled',
  unknown: 'unknown yet',
}

const timeHeads = ['queue p50', 'queue p99', 'work p50', 'work p99'] as const

const quantiles = (of: Quantiles | null, none = 'none'): readonly string[] =>
  of === null ? [none, none] : [duration(of.p50), duration(of.p99)]

/** One path for each outcome. */
function barPaths(byStep: ReadonlyMap<number, Figures['bars']>, steps: number): Html {
  const highest = highestOf(byStep)
  const room = height - 1 - stacked.length * leastHeight
  const paths = new Map<Outcome, string>()
  for (const [step, found] of byStep) {
    let top = height - 1
    for (const outcome of stacked) {
      const runs = found.find((each) => each.outcome === outcome)?.runs ?? 0
      if (runs === 0) continue
      const tall = leastHeight + (room * runs) / highest
      top -= tall
      const [x, y, across, down] = [(step * width) / steps, top, width / steps - gap, tall].map((each) =>
        each.toFixed(1),
      )
      paths.set(outcome, `${paths.get(outcome) ?? ''}M${x} ${y}h${across}v${down}h-${across}z`)
    }
  }
  return html`${[...paths].map(([outcome, path]) => html`<path class="${outcome}" d="${path}"/>`)}`
}

const highestOf = (byStep: ReadonlyMap<number, Figures['bars']>): number =>
  Math.max(1, ...[...byStep.values()].map((all) => sumOf(all.map(({ runs }) => runs))))

const swatch = (outcome: Outcome): Html =>
  html`<svg class="swatch" viewBox="0 0 12 12" aria-hidden="true"><rect class="${outcome}" width="12" height="12"/></svg>`

/** Hatched patterns, so that bars differ in more than colour. */
const patterns = html`<defs>
<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="back" width="6" height="6"/><rect class="line" width="3" height="6"/></pattern>
<pattern id="dotted" width="5" height="5" patternUnits="userSpaceOnUse"><rect class="back" width="5" height="5"/><circle class="line" cx="2.5" cy="2.5" r="1.4"/></pattern>
</defs>`
