import { type Html, html } from '../../http/html.ts'
import type { RunRow } from '../../lists/run-rows.ts'
import { runPagePath } from '../addresses.ts'
import { table } from '../table.ts'
import { duration, looks, mark, nameText, number, outcomeMark, sentenceText, shortTime, titleText } from '../words.ts'

export type RunGroup = ReturnType<typeof groupByCause>[number]

/**
 * Groups runs.
 *
 * @param rows the newest first
 * @returns the groups that still fail first, and then the latest; `open`: how many of them failed or were cancelled, and were not
 * repaired by a later run; null when the caller may not know, and for other runs
 */
export function groupByCause(rows: readonly RunRow[]) {
  // Numbers of processes and times do not part what has one cause.
  const keyOf = (row: RunRow) => `${row.outcome} ${causeOf(row).replaceAll(/\d+/g, '#')}`
  const groups = [...Map.groupBy(rows, keyOf).values()].flatMap((all) => {
    const [last] = all
    if (last === undefined) return []
    const { id, outcome, created_at, repaired } = last
    const isKnown = (outcome === 'failed' || outcome === 'cancelled') && repaired !== null
    return {
      outcome,
      cause: causeOf(last),
      runs: all.length,
      open: isKnown ? all.filter((each) => each.repaired === false).length : null,
      last: { id, createdAt: new Date(created_at) },
      submitters: [...new Set(all.flatMap(({ submitter_name }) => submitter_name ?? []))],
      owners: [...new Set(all.flatMap(({ owners }) => owners))],
    }
  })
  return groups.sort((one, other) => Number((other.open ?? 0) > 0) - Number((one.open ?? 0) > 0))
}

const causeOf = ({ cause, reason, outcome, sentence }: RunRow) =>
  cause ?? (outcome === 'cancelled' ? sentence?.replace(/^not applied: /, '') : null) ?? reason ?? ''

export const runLink = ({ id, title }: Pick<RunRow, 'id' | 'title'>): Html =>
  html`<a href="${runPagePath(id)}" title="${title}">${titleText(title)}</a>`

/** A user who was deleted has no name any more. */
export const person = ({ submitter_name }: Pick<RunRow, 'submitter_name'>): string => nameText(submitter_name ?? 'gone')

export const runTable = (caption: string, rows: readonly RunRow[]): Html =>
  table(
    caption,
    rows,
    {
      Recorded: ['plain', (row) => shortTime(new Date(row.created_at))],
      Outcome: [
        'plain',
        (row) =>
          html`${outcomeMark(row)}${row.repaired === true && html` <span class="quiet">repaired</span>`}${row.former !== null && html` <span class="quiet">roll back</span>`}`,
      ],
      Run: ['name', runLink],
      Who: ['name', person],
      Owner: ['name', ({ owners }) => names(owners)],
      ...(rows.some(({ pipeline }) => pipeline !== null) && {
        Commit: ['name', ({ pipeline }) => pipeline?.commit?.slice(0, 8) ?? ''],
      }),
      Queue: ['number', ({ queue_ms: ms }) => (ms === null ? '' : duration(ms))],
      Work: ['number', ({ work_ms: ms }) => (ms === null ? '' : duration(ms))],
      Why: ['text', ({ cause, sentence }) => sentenceText(cause ?? sentence ?? '')],
    },
    { idOf: ({ id }) => `run-${id}` },
  )

/** Groups, the largest first. */
export const byFrequency = <Each>(all: readonly Each[], keyOf: (each: Each) => string) =>
  [...Map.groupBy(all, keyOf)].toSorted(([, one], [, other]) => other.length - one.length)

const mostNames = 3

export function names(all: readonly string[]): string {
  const some = all.slice(0, mostNames).map(nameText).join(', ')
  return all.length <= mostNames ? some : `${some} and ${all.length - mostNames} more`
}

/** Runs of one outcome and cause, one group in each row. @param most the most groups */
export const groupTable = (caption: string, groups: readonly RunGroup[], most: number): Html =>
  table(
    caption,
    groups,
    {
      Cause: ['text', ({ cause }) => (cause === '' ? 'none' : sentenceText(cause))],
      State: ['plain', groupState],
      Runs: ['number', ({ runs }) => number(runs)],
      Who: ['name', ({ submitters }) => names(submitters)],
      Owner: ['name', ({ owners }) => names(owners)],
      Last: ['plain', ({ last }) => html`<a href="${runPagePath(last.id)}">${shortTime(last.createdAt)}</a>`],
    },
    { isQuiet: ({ open }) => open === 0, most },
  )

function groupState({ open, outcome }: RunGroup): Html {
  if (open === null) return mark(looks[outcome], outcome)
  return open === 0 ? mark('good', 'repaired') : mark('bad', `${number(open)} still failing`)
}
