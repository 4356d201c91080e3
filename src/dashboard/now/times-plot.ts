import { type Html, html } from '../../http/html.ts'
import type { Figures, Quantiles } from '../../lists/run-sums.ts'
import { duration, number, shortTime } from '../words.ts'

/**
 * p50 and p99 over time, as SVG that the server draws: one plot of the time in the queue and one of the time at work, below the
 * bars of the same steps. Their text keeps its size at any width.
 */

/** The width of the lines, whose plot is scaled to the width of the page. The bars have the same width. */
const width = 720
const height = 100
const top = 4
const bottom = 98

type Place = { readonly from: Date; readonly stepS: number; readonly steps: number }

const plots = [
  { of: 'queueMs', id: 'queue', title: 'Time in the queue' },
  { of: 'workMs', id: 'work', title: 'Time at work' },
] as const

/** @param place the position of a step on the page, as in the plot of the bars */
export function timesPlots({ steps, times }: Figures, place: Place): Html {
  const all = steps.flatMap(({ queueMs, workMs }) => [queueMs, workMs].filter((each) => each !== null))
  if (all.length === 0) return html`<p class="quiet">No worker began a run: there are no times.</p>`
  const scale = scaleOf(all)
  return html`${plots.map(({ of, id, title }) => {
    const found = steps.flatMap(({ at, [of]: quantiles }) => (quantiles === null ? [] : [{ at, ...quantiles }]))
    const highest = found.toSorted((one, other) => other.p99 - one.p99).at(0)
    return html`<figure class="times">
<figcaption><strong>${title}</strong><span>${swatch('p50')}p50</span><span>${swatch('p99')}p99</span>${highest !== undefined && html`<span>highest p99: ${duration(highest.p99)}, ${shortTime(highest.at)}</span>`}</figcaption>
<svg class="lines" role="img" aria-labelledby="${id}-title" aria-describedby="${id}-says">
<title id="${id}-title">${title}, p50 and p99</title>
<desc id="${id}-says">${says(found, times[of])}</desc>
<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none">
<path class="scale" d="${scale.decades.map((ms) => `M0 ${rounded(scale.y(ms))}H${width}`).join('')}"/>
${(['p99', 'p50'] as const).map((quantile) => html`<path class="${quantile}" d="${path(found, quantile, place, scale)}"/>`)}
</svg>
${scale.decades.map((ms) => html`<text x="-6" y="${rounded(scale.y(ms))}%" dy=".35em">${decadeWords(ms)}</text>`)}
</svg>
</figure>`
  })}
<p class="quiet">Each line of the scale is ten times the one below it.</p>`
}

type Found = readonly (Quantiles & { readonly at: Date })[]

function says(found: Found, whole: Quantiles | null): string {
  if (whole === null) return 'There are none.'
  const of = (quantile: 'p50' | 'p99') => {
    const all = found.map((each) => each[quantile])
    return `${quantile}: ${duration(whole[quantile])}, step by step from ${duration(Math.min(...all))} to ${duration(Math.max(...all))}`
  }
  return `${of('p50')}. ${of('p99')}. The table of the bars has all of them.`
}

type Scale = { readonly decades: readonly number[]; readonly y: (ms: number) => number }

/**
 * The scale from the power of ten below the shortest time, and at least a millisecond, to the one above the longest: both plots
 * have the same.
 */
function scaleOf(all: readonly Quantiles[]): Scale {
  const exponent = (ms: number) => Math.log10(Math.max(1, ms))
  const lowest = Math.floor(exponent(Math.min(...all.map(({ p50 }) => p50))))
  const highest = Math.max(lowest + 1, Math.ceil(exponent(Math.max(...all.map(({ p99 }) => p99)))))
  return {
    decades: Array.from({ length: highest - lowest + 1 }, (_, each) => 10 ** (lowest + each)),
    y: (ms) => bottom - ((bottom - top) * (exponent(ms) - lowest)) / (highest - lowest),
  }
}

/** A level line as wide as each step, so that one without neighbours is visible too. Steps without a time are a gap. */
function path(found: Found, quantile: 'p50' | 'p99', { from, stepS, steps }: Place, { y }: Scale): string {
  let last: number | undefined
  return found
    .map((each) => {
      const step = Math.round((each.at.getTime() - from.getTime()) / 1_000 / stepS)
      const isNext = step - 1 === last
      last = step
      const [begin, end] = [step, step + 1].map((edge) => rounded((edge * width) / steps))
      const level = rounded(y(each[quantile]))
      return `${isNext ? `V${level}` : `M${begin} ${level}`}H${end}`
    })
    .join('')
}

const rounded = (of: number): number => Math.round(of * 10) / 10

const decadeWords = (ms: number): string => (ms < 1_000 ? `${ms} ms` : `${number(ms / 1_000)} s`)

const swatch = (quantile: 'p50' | 'p99'): Html =>
  html`<svg class="swatch lines" viewBox="0 0 12 12" aria-hidden="true"><path class="${quantile}" d="M0 6H12"/></svg>`
