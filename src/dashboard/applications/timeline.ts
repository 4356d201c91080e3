import { type Html, html } from '../../http/html.ts'
import type { Actor } from '../../permissions.ts'
import { mayRollBack } from '../../submissions/access.ts'
import type { HistoryEntry, Recorded } from '../../views/history.ts'
import { rollBackPath, runPagePath } from '../addresses.ts'
import { fieldList } from '../runs/changes.ts'
import { table } from '../table.ts'
import { type Look, mark, nameText, shortId, time } from '../words.ts'

/** The changes of an application, the newest first. */

export type Timeline = {
  readonly entries: readonly Recorded[]
  readonly next: string | null
  readonly nameOf: (model: string) => string
}

const actions: Readonly<Record<HistoryEntry['action'], readonly [Look, string]>> = {
  create: ['good', 'created'],
  update: ['changed', 'changed'],
  delete: ['bad', 'deleted'],
}

export const timeline = ({ entries, nameOf }: Timeline, actor: Actor): Html =>
  table(
    'What was done',
    {
      At: 'plain',
      What: 'plain',
      Object: 'name',
      Who: 'name',
      Run: 'plain',
      'Fields, from -> to': 'text',
    },
    entries.map(({ entry, cursor, run: former }) => {
      const { at, action, model, name, was, owner, fields, user, real_user, run } = entry
      return {
        id: `change-${cursor}`,
        cells: [
          time(new Date(at)),
          mark(...actions[action]),
          html`${nameOf(model)} ${nameText(name)}${was !== null && `, was ${nameText(was)}`}${owner !== null && html`<br><span class="quiet">owner ${nameText(owner)}</span>`}`,
          html`${nameText(user?.username ?? 'not shown')}${real_user !== null && `, in truth ${nameText(real_user.username)}`}`,
          run !== null &&
            html`<a href="${runPagePath(run)}">${shortId(run)}</a>${
              former?.hasDocument === true &&
              mayRollBack(actor, former.submitterPk) &&
              html`<br><a href="${rollBackPath(run)}">roll back to this</a>`
            }`,
          fields === null ? html`<span class="quiet">not kept</span>` : fieldList(fields, action === 'create'),
        ],
      }
    }),
  )
