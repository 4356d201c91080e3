import { type Html, html } from '../../http/html.ts'
import type { RunGroup } from '../../lists/run-groups.ts'
import type { RunRow } from '../../lists/run-rows.ts'
import { runPagePath } from '../addresses.ts'
import { table } from '../table.ts'
import { duration, looks, mark, number, outcomeMark, shortTime } from '../words.ts'

/** Runs in tables: one in each row, or those of one cause. */

export const runLink = ({ id, title }: Pick<RunRow, 'id' | 'title'>): Html =>
  html`<a href="${runPagePath(id)}">${title}</a>`

/** A user who was deleted has no name any more. */
export const person = ({ submitter_name }: Pick<RunRow, 'submitter_name'>): string => submitter_name ?? 'gone'

/** @param at when it is read: of today, the clock alone is shown */
export const runTable = (caption: string, rows: readonly RunRow[], at: Date): Html =>
  table(
    caption,
    [
      { head: 'Recorded' },
      { head: 'Outcome' },
      { head: 'Run', of: 'text' },
      { head: 'Who', of: 'name' },
      { head: 'Owner', of: 'name' },
      { head: 'Queue', of: 'number' },
      { head: 'Work', of: 'number' },
      { head: 'Why', of: 'text' },
    ],
    rows.map((row) => ({
      id: `run-${row.id}`,
      cells: [
        shortTime(new Date(row.created_at), at),
        html`${outcomeMark(row)}${row.repaired === true && html` <span class="quiet">repaired</span>`}`,
        runLink(row),
        person(row),
        row.owner ?? '',
        row.queue_ms === null ? '' : duration(row.queue_ms),
        row.work_ms === null ? '' : duration(row.work_ms),
        row.cause ?? row.sentence ?? '',
      ],
    })),
  )

const mostNames = 3

export const names = (all: readonly string[]): string =>
  all.length <= mostNames ? all.join(', ') : `${all.slice(0, mostNames).join(', ')} and ${all.length - mostNames} more`

/** Runs of one outcome and cause, one group in each row. */
export const groupTable = (caption: string, groups: readonly RunGroup[]): Html =>
  table(
    caption,
    [
      { head: 'Cause', of: 'text' },
      { head: 'State' },
      { head: 'Runs', of: 'number' },
      { head: 'Who', of: 'name' },
      { head: 'Owner', of: 'name' },
      { head: 'Last' },
    ],
    groups.map(({ outcome, cause, runs, open, last, submitters, owners }) => ({
      look: open === 0 ? 'quiet' : undefined,
      cells: [
        cause === '' ? 'none' : cause,
        open === null
          ? mark(looks[outcome], outcome)
          : open === 0
            ? mark('good', 'repaired')
            : mark('bad', `${number(open)} still failing`),
        number(runs),
        names(submitters),
        names(owners),
        html`<a href="${runPagePath(last.id)}">${shortTime(last.createdAt)}</a>`,
      ],
    })),
  )
