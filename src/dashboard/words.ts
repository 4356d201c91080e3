import { type Html, type HtmlValue, html } from '../http/html.ts'
import type { RunRow } from '../lists/run-rows.ts'
import type { Registry } from '../models/registry.ts'
import type { Pipeline } from '../pipeline.ts'
import type { Pause } from '../queue/pause.ts'
import { youngS } from '../runs/queued.ts'
import { cutTo } from '../sides.ts'
import { runsPath, withQuery } from './addresses.ts'

/** Times, amounts and states, as all pages show them. */

export const utc = 'UTC'

const formats = new Map<string, Intl.DateTimeFormat>()

/** `2026-11-23 09:15:04 CET`: the same zone has another name in summer. Sweden writes times as ISO 8601 does. */
export const written = (at: Date, timeZone: string): string =>
  formats
    .getOrInsertComputed(
      timeZone,
      () => new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'long' }),
    )
    .format(at)

/** @param zone pages leave it out: `times.ts` writes their times in the zone of the caller */
export const time = (at: Date, zone = utc): Html =>
  html`<time datetime="${at.toISOString()}">${written(at, zone)}</time>`

/** Today's clock alone, or the day with it, on a page whose head names the zone. */
export const shortTime = (at: Date, now = new Date(), zone = utc): Html => {
  const whole = written(at, zone)
  const isToday = whole.slice(0, 10) === written(now, zone).slice(0, 10)
  return html`<time datetime="${at.toISOString()}" title="${whole}">${isToday ? whole.slice(11, 19) : whole.slice(0, 16)}</time>`
}

/** `3 ms`, `1.2 s`, `45 s`, `12 min`, `3 h 5 min`, `4 d`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`
  const s = Math.round(ms / 1_000)
  if (s < 120) return `${s} s`
  const min = Math.round(s / 60)
  if (min < 120) return `${min} min`
  const h = Math.floor(min / 60)
  if (h < 48) return min % 60 === 0 ? `${h} h` : `${h} h ${min % 60} min`
  return `${Math.floor(h / 24)} d`
}

const grouped = new Intl.NumberFormat('en-US')

export const number = (of: number): string => grouped.format(of).replaceAll(',', '\u202f')

/** A text that others wrote, in one place among many. Texts of normal length are shown whole. */
export const nameText = (of: string): string => cutTo(160, of)
export const titleText = (of: string): string => cutTo(400, of)
/** A name on one line, which is cut where it is too long for its place, and whole in its title. */
export const named = (of: string): Html => html`<span class="name" title="${of}">${of}</span>`

/** A word that may be a name or an id, and that a browser would break at a hyphen, or within itself. An address is none. */
const breakable = /^(?=.*-|.{20})(?!.*:\/\/)[\p{L}\p{N}_./@:,"'()-]{1,255}$/u

/** A text whose names and ids stay on one line. */
export const whole = (text: string): readonly HtmlValue[] =>
  text.split(/(\s+)/).map((word) => (breakable.test(word) ? named(word) : word))

/** Copies a text, where there is a script. `{origin}` in it is the address of this host, as the browser has it. */
export const copyButton = (label: string, text: string): Html =>
  html`<button type="button" class="copy" data-copy="${text}">${label}</button>`
/** A sentence of the service, with the times in it in the form of all times. */
export const sentenceText = (of: string): readonly HtmlValue[] =>
  cutTo(500, of)
    .split(/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/)
    .map((part, index) => (index % 2 === 1 && Number.isFinite(Date.parse(part)) ? shortTime(new Date(part)) : part))

/** The look of a state: a shape, and a colour. The word stands beside it. */
export type Tone = 'good' | 'same' | 'changed' | 'warn' | 'bad' | 'off' | 'open'

export const mark = (look: Tone, word: HtmlValue): Html => html`<span class="mark ${look}">${word}</span>`

/** The look of each word about a run: quiet when nothing changed, neutral while it goes on, amber for attention, red for a failure. */
export const looks: Readonly<Record<RunRow['outcome'] | 'running' | 'waiting' | 'late' | 'blocked', Tone>> = {
  applied: 'good',
  unchanged: 'same',
  planned: 'open',
  refused: 'warn',
  failed: 'bad',
  cancelled: 'warn',
  unknown: 'open',
  waiting: 'open',
  late: 'warn',
  running: 'open',
  blocked: 'warn',
}

type Marked = Pick<RunRow, 'outcome' | 'state' | 'created_at' | 'isBlocked'>

/** The word of a run and its look: its outcome, or that it is blocked, at work, or waits. */
export function stateOf({ outcome, state, created_at, isBlocked }: Marked): readonly [Tone, string] {
  if (outcome !== 'unknown') return [looks[outcome], outcome]
  if (isBlocked) return [looks.blocked, 'blocked']
  if (state === 'running') return [looks.running, 'running']
  return [Date.now() - Date.parse(created_at) > 1_000 * youngS ? looks.late : looks.waiting, 'waiting']
}

export const outcomeMark = (run: Marked): Html => mark(...stateOf(run))

/** The display names of models. */
export const namesOf =
  ({ byName }: Pick<Registry, 'byName'>) =>
  (model: string): string =>
    byName(model)?.displayName ?? model

/** `3 runs`, `1 run` */
export const count = (of: number, what: string): string => `${number(of)} ${what}${of === 1 ? '' : 's'}`

/** The words of a code: `pause_queue` -> `pause queue`. */
export const wordsOf = (code: string): string => code.replaceAll('_', ' ')

/** The end of an id: its beginning is a time, the same in all ids of a minute (RFC 9562, version 7). */
export const shortId = (id: string): string => id.slice(-8)

/** The facts of the job of a CI system. They are texts of others: what is no address of HTTPS becomes no link. */
export const jobFacts = (pipeline: Pipeline | null): (readonly [string, HtmlValue])[] =>
  Object.entries(pipeline ?? {}).map(([name, claim]) => {
    const isListed = name === 'repository' || name === 'commit'
    const to = isListed ? withQuery(runsPath, { period: 'all', [name]: claim }) : name === 'job_url' && claim
    const isLink = isListed || URL.parse(to || '')?.protocol === 'https:'
    // No claim is kept on one line: it may be longer than a narrow page.
    const text = claim && html`${nameText(claim)}`
    return [`CI ${wordsOf(name)}`, text && isLink ? html`<a href="${to}">${text}</a>` : text]
  })

/** A part of a page that could not be read. */
export const notKnown = (why = 'This could not be read just now.'): Html => html`<p class="quiet">${why}</p>`

/** `Queue paused by alice 12:12:04, new disks.` */
export const pauseSentence = ({ by }: Pause): Html =>
  by === null
    ? html`Queue paused, by other means than the dashboard.`
    : html`Queue paused by ${by.name} ${shortTime(by.since)}${by.reason !== null && `, ${by.reason}`}.`

export const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
