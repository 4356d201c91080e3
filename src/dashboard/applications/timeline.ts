import { type Html, html } from '../../http/html.ts'
import type { Actor } from '../../permissions.ts'
import { mayRollBack } from '../../submissions/access.ts'
import type { Beside, HistoryEntry } from '../../views/history.ts'
import { applicationPath, comparePath, rollBackPath, runPagePath } from '../addresses.ts'
import { fieldList } from '../runs/changes.ts'
import { table } from '../table.ts'
import { type Look, mark, nameText, shortId, time } from '../words.ts'

/** The changes of an application, the newest first, with the choice of two states to compare. */

/** The chosen states, by their audit rows. */
export type Chosen = { readonly from?: string | undefined; readonly to?: string | undefined }

export type Timeline = {
  readonly slug: string
  readonly entries: readonly HistoryEntry[]
  /** One item for each entry. */
  readonly beside: readonly Beside[]
  readonly next: string | null
  readonly chosen: Chosen
  readonly nameOf: (model: string) => string
}

/** The state after a change: the first one of those that were written together. */
export const stateText = ({ at, user, run }: HistoryEntry): Html =>
  html`after ${time(new Date(at))}${user !== null && `, ${nameText(user.username)}`}${run !== null && html`, run <a href="${runPagePath(run)}">${shortId(run)}</a>`}`

/** The query of an address; empty when nothing is chosen. */
export function queryOf({ from, to }: Chosen): string {
  const query = new URLSearchParams([...(from ? [['from', from]] : []), ...(to ? [['to', to]] : [])]).toString()
  return query === '' ? '' : `?${query}`
}

const actions: Readonly<Record<HistoryEntry['action'], readonly [Look, string]>> = {
  create: ['good', 'created'],
  update: ['changed', 'changed'],
  delete: ['bad', 'deleted'],
}

/** The most bytes of the HTML of one entry's fields. */
const mostOfEntry = 2_500
const formId = 'compare'
const sides = ['from', 'to'] as const

export function timeline(of: Timeline, actor: Actor): Html {
  const { slug, entries, beside, next, chosen, nameOf } = of
  const states = beside.map(({ state }) => state)
  const rows = table(
    'What was done',
    {
      At: 'plain',
      From: 'plain',
      To: 'plain',
      What: 'plain',
      Object: 'name',
      Who: 'name',
      Run: 'plain',
      'Fields, from -> to': 'text',
    },
    entries.map((entry, index) => {
      const { at, action, model, name, was, owner, fields, user, real_user, run } = entry
      const { state = '', run: former = null } = beside[index] ?? {}
      // Changes that were written together are one state.
      const place = index - states.indexOf(state)
      const isNext = place === 0
      return {
        id: `change-${state}-${place}`,
        cells: [
          time(new Date(at)),
          ...sides.map((side) => isNext && radio(side, state, chosen, at)),
          mark(...actions[action]),
          html`${nameOf(model)} ${nameText(name)}${was !== null && `, was ${nameText(was)}`}${owner !== null && html`<br><span class="quiet">owner ${nameText(owner)}</span>`}`,
          html`${nameText(user?.username ?? 'not shown')}${real_user !== null && `, in truth ${nameText(real_user.username)}`}`,
          run !== null &&
            html`<a href="${runPagePath(run)}">${shortId(run)}</a>${
              former?.hasDocument === true &&
              mayRollBack(actor, former.submitterPk) &&
              html`<br><a href="${rollBackPath(run)}">roll back to this</a>`
            }`,
          fields === null
            ? html`<span class="quiet">not kept</span>`
            : fieldList(fields, action === 'create', mostOfEntry),
        ],
      }
    }),
  )
  const others = sides.flatMap((side) => {
    const state = chosen[side]
    return state === undefined || states.includes(state) ? [] : [elsewhere(side, state)]
  })
  if (new Set(states).size < 2 && next === null && others.length === 0) return rows
  return html`${rows}
<form id="${formId}" method="get" action="${comparePath(slug)}">${others}
<p class="quiet">Choose two states, as they were after a change, or none for the last two.</p>
<div class="choice"><button type="submit">Compare from -> to</button>${
    next !== null &&
    html`<button type="submit" class="button" name="before" value="${next}" formaction="${applicationPath(slug)}">Keep the choice, show older</button>`
  }</div></form>`
}

/** A radio button outside of its form, which the script leaves as it is. */
const radio = (side: 'from' | 'to', state: string, chosen: Chosen, at: string): Html =>
  html`<input type="radio" form="${formId}" name="${side}" value="${state}" aria-label="${side} the state of ${at.slice(0, 19).replace('T', ' ')} UTC"${chosen[side] === state && html` checked`}>`

const elsewhere = (side: 'from' | 'to', state: string): Html =>
  html`<p><label><input type="radio" name="${side}" value="${state}" checked> ${side}: a state of another page</label></p>`
