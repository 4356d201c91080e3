import { type Html, html } from '../../http/html.ts'
import { bars as barsOfPlot, type Figures, mostCounted, runsOf } from '../../lists/run-figures.ts'
import { type Outcome, outcomes } from '../../runs/outcome.ts'
import { table } from '../table.ts'
import { number, shortTime } from '../words.ts'

/** Stacked bars of outcomes: SVG that the server draws, with the sums in a table. */

const width = 720
const height = 120
const gap = 1
/** The least height of a bar: one failure among thousands is visible. */
const leastHeight = 3

/** The order of the bars from the ground up: outcomes that need attention are on top. */
const stacked: readonly Outcome[] = ['applied', 'unchanged', 'unknown', 'cancelled', 'refused', 'failed']

export function plot(figures: Figures): Html {
  const { bars, total, since } = figures
  const highest = Math.max(1, ...bars.map(runsOf))
  const said = outcomes.flatMap((each) => (total[each] > 0 ? [`${total[each]} ${each}`] : [])).join(', ')
  return html`<div class="plot">
<figure>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="Submissions by outcome: ${said || 'none'}">
${patterns}
<line class="ground" x1="0" x2="${width}" y1="${height - 0.5}" y2="${height - 0.5}"/>
${barPaths(figures, highest)}
</svg>
<figcaption><span>an hour ago</span><span>a bar for each minute, the highest ${number(highest)}</span><span>now</span></figcaption>
${since !== null && html`<p class="quiet">The newest ${number(mostCounted)} alone are counted: those since ${shortTime(since)}.</p>`}
</figure>
<div>${table('Submissions of the last hour', outcomes, {
    Outcome: [
      'plain',
      (each) => html`<span class="key">${swatch(each)}${each === 'unknown' ? 'unknown yet' : each}</span>`,
    ],
    Runs: ['number', (each) => number(total[each])],
  })}</div>
</div>`
}

function barPaths({ bars }: Figures, highest: number): Html {
  const room = height - 1 - stacked.length * leastHeight
  const tallOf = (runs: number) => (runs === 0 ? 0 : leastHeight + (room * runs) / highest)
  const path = (outcome: Outcome): string =>
    bars
      .filter((bar) => bar[outcome] > 0)
      .map((bar) => {
        const upTo = stacked.slice(0, stacked.indexOf(outcome) + 1)
        const top = upTo.reduce((y, each) => y - tallOf(bar[each]), height - 1)
        const box = [(bar.bar * width) / barsOfPlot, top, width / barsOfPlot - gap, tallOf(bar[outcome])]
        const [x, y, across, down] = box.map((each) => each.toFixed(1))
        return `M${x} ${y}h${across}v${down}h-${across}z`
      })
      .join('')
  return html`${stacked.map((outcome) => html`<path class="${outcome}" d="${path(outcome)}"/>`)}`
}

const swatch = (outcome: Outcome): Html =>
  html`<svg class="swatch" viewBox="0 0 12 12" aria-hidden="true"><rect class="${outcome}" width="12" height="12"/></svg>`

/** Hatched patterns, so that bars differ in more than colour. */
const patterns = html`<defs>
<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="back" width="6" height="6"/><rect class="line" width="3" height="6"/></pattern>
<pattern id="dotted" width="5" height="5" patternUnits="userSpaceOnUse"><rect class="back" width="5" height="5"/><circle class="line" cx="2.5" cy="2.5" r="1.4"/></pattern>
</defs>`
