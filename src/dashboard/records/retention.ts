import type { Db } from '../../db/client.ts'
import type { Api } from '../../http/api.ts'
import { html } from '../../http/html.ts'
import { type Due, mostDue, type Retention, readDue } from '../../runs/retention.ts'
import { refusalsKept } from '../../views/refusal.ts'
import { auditPath, retentionPath } from '../addresses.ts'
import { page, pageRoute, sendPage } from '../frame.ts'
import { ifInTime } from '../late.ts'
import { table } from '../table.ts'
import { count, notKnown, number, time } from '../words.ts'

/** /admin/retention/: what workers delete because of its age, and when. */
export const retentionPage = (app: Api, db: Db, retention: Retention): void => {
  const { runDays, auditDays } = retention
  app.get(retentionPath, pageRoute({}), async ({ actor }, reply) => {
    const found = await ifInTime(readDue(db, retention))
    const content = html`<p>Workers delete what is too old every minute. These are the settings of this server: those of the workers count.</p>
<section>${
      found === null
        ? notKnown()
        : table(
            'What is deleted',
            { What: 'text', 'Kept for': 'text', 'The oldest goes': 'plain', 'Within a day': 'number' },
            [
              row('Finished runs, with their changes', `${count(runDays, 'day')} (RUN_DAYS)`, found.runs, runDays),
              row('Audit rows', `${count(auditDays, 'day')} (AUDIT_DAYS)`, found.audit, auditDays),
              row('Secrets that runs generated', 'RUN_SECRETS_HOURS of the worker', found.secrets, 0),
              {
                cells: [
                  'Refusals',
                  `the newest ${number(refusalsKept)} of users, and of others`,
                  'with each new one',
                  '',
                ],
              },
            ],
          )
    }</section>`
    return sendPage(
      reply,
      page({ title: 'What is deleted, and when', asOf: new Date(), actor, within: auditPath, content }),
    )
  })
}

const dayMs = 86_400_000

function row(what: string, kept: string, { oldest, due }: Due, days: number) {
  const goes = oldest === null ? 'there is none' : time(new Date(oldest.getTime() + days * dayMs))
  return { cells: [what, kept, goes, due === mostDue ? `${number(due)}+` : number(due)] }
}
