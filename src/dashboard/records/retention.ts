import { keyViewHours } from '../../apply/token-key.ts'
import { ifInTime } from '../../db/in-time.ts'
import type { Api } from '../../http/api.ts'
import { html } from '../../http/html.ts'
import { keyHours } from '../../runs/idempotency.ts'
import { type Due, identityHours, mostDue, readDue } from '../../runs/retention.ts'
import { refusalsKept } from '../../views/refusal.ts'
import { retentionPath } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import type { Sources } from '../sources.ts'
import { table } from '../table.ts'
import { count, notKnown, number, time } from '../words.ts'

/** /admin/retention/: what workers delete because of its age, and when. */
export const retentionPage = (app: Api, { db, registry, retention }: Sources): void => {
  const { runDays, auditDays } = retention
  app.get(retentionPath, pageRoute({}), async (_, reply) => {
    const found = await ifInTime(readDue(db, registry, retention))
    const content = html`<p>Workers delete every minute, each by its own RUN_DAYS and AUDIT_DAYS: the shortest time holds. This page computes with those of this server, so set them alike.</p>
<section>${
      found === null
        ? notKnown()
        : table(
            'What is deleted',
            [
              ['Finished runs, with their changes', `${count(runDays, 'day')} (RUN_DAYS)`, ...dueText(found.runs)],
              ['Audit rows', `${count(auditDays, 'day')} (AUDIT_DAYS)`, ...dueText(found.audit)],
              [
                'Secrets that runs generated',
                'RUN_SECRETS_HOURS of the worker that applied them',
                ...dueText(found.secrets),
              ],
              ['Former client secrets', 'until their overlap ends', ...dueText(found.former)],
              ['Keys of tokens that were not viewed', count(keyViewHours, 'hour'), ...dueText(found.keys)],
              ['Idempotency keys', count(keyHours, 'hour'), ...dueText(found.retries)],
              ['Access tokens of jobs, valid for 15 minutes', count(identityHours, 'hour'), 'with that age', ''],
              ['Refusals', `the newest ${number(refusalsKept)} of users, and of others`, 'with each new one', ''],
            ] as const,
            {
              What: ['text', ([what]) => what],
              'Kept for': ['text', ([, kept]) => kept],
              'The oldest goes': ['plain', ([, , next]) => next],
              'Within a day': ['number', ([, , , due]) => due],
            },
          )
    }
<p class="quiet">A run that is still queued after an hour is cancelled.</p></section>`
    return sendPage(reply, { title: 'What is deleted, and when', asOf: new Date(), within: retentionPath, content })
  })
}

const dueText = ({ next, due }: Due) =>
  [next === null ? 'there is none' : time(next), due === mostDue ? `${number(due)}+` : number(due)] as const
