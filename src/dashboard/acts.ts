import { z } from 'zod'
import { auditRow } from '../apply/audit.ts'
import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import { html } from '../http/html.ts'
import { shownOnly } from '../models/fields.ts'
import { storable } from '../models/syntax.ts'
import type { Actor } from '../permissions.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { applyQueue } from '../queue/define.ts'
import { answered } from '../queue/enqueue.ts'
import { type Pause, readPause } from '../queue/pause.ts'
import { actPath, nowPath } from './addresses.ts'
import { whyField } from './filter-fields.ts'
import { pageRoute, type Shell, sendPage } from './frame.ts'
import { requireActs } from './login.ts'
import type { Sources } from './sources.ts'
import { pauseSentence } from './words.ts'

/**
 * The acts of operators on the queue. Each act has an audit row with the operator's name, the object and the value. The row is
 * written first: it records the request, also of an act that then fails.
 */
export const acts = {
  pause: {
    title: 'Pause the queue',
    perform: pause,
    follows: [
      'No worker takes a job until the queue is resumed. Runs that are at work end.',
      'Submissions that wait for their end are answered with 503, and are not applied.',
      html`Submissions with <code>Prefer: respond-async</code> are recorded, and applied when the queue is resumed.`,
      'The probe of what is applied is 503, and names you, the time and the reason.',
    ],
  },
  resume: {
    title: 'Resume the queue',
    perform: resume,
    follows: [
      'Workers take jobs again at once. Runs that still wait are applied.',
      'Runs that were cancelled meanwhile are not applied.',
    ],
  },
} as const

type Act = keyof typeof acts

type Operator = { readonly actor: Actor; readonly requestId: string; readonly reason: string | null }

/** The longest reason, in characters: the column has no more. */
const longestReason = 200

async function pause(db: Db, queue: ApplyQueue, operator: Operator): Promise<void> {
  const { name } = applyQueue
  const { actor, reason } = operator
  await db.$transaction([
    record(db, operator, 'pause_queue', true),
    db.queuePause.deleteMany({ where: { queue: name } }),
    db.queuePause.create({ data: { queue: name, pausedBy: actor.username, reason } }),
  ])
  await answered(queue.pause())
}

async function resume(db: Db, queue: ApplyQueue, operator: Operator): Promise<void> {
  await record(db, operator, 'resume_queue', false)
  await answered(queue.resume())
  await db.queuePause.deleteMany({ where: { queue: applyQueue.name } })
}

function record(db: Db, { actor, requestId, reason }: Operator, action: string, isPaused: boolean) {
  const row = { model: 'queue', key: applyQueue.name, action: 'update', fields: ['paused'] } as const
  const changes = [{ ...row, value: isPaused, ...(reason !== null && { reason }) }]
  return db.auditRow.create({ data: auditRow({ actor, requestId, action, changes }) })
}

const sentReason = z.object({ reason: z.string().trim().default('') })

/** The pages that confirm acts. The hook of the scope requires `manage_queue` of the forms. */
export function actPages(app: Api, { db, queue }: Sources): void {
  for (const name of Object.keys(acts) as Act[]) {
    app.get(actPath(name), pageRoute({}), async ({ actor }, reply) => {
      requireActs(actor)
      return sendPage(reply, actPage(name, await readPause(queue, db)))
    })
    app.post(actPath(name), pageRoute({}), async ({ actor, id: requestId, body }, reply) => {
      const reason = sentReason.safeParse(body ?? {}).data?.reason ?? ''
      const wrong = whyNoReason(reason)
      const now = await readPause(queue, db)
      if (wrong !== undefined) return sendPage(reply.code(400), actPage(name, now, wrong))
      if (isDue(name, now))
        await acts[name].perform(db, queue, { actor, requestId, reason: reason === '' ? null : reason })
      return reply.redirect(nowPath, 303)
    })
  }
}

/** Checks a reason. It stands in sentences of one line. */
function whyNoReason(reason: string): string | undefined {
  if (reason.length > longestReason) return `Say it in at most ${longestReason} characters.`
  return (storable(reason) ?? shownOnly(reason)) === undefined ? undefined : 'It has a character that cannot be shown.'
}

const isDue = (name: Act, pause: Pause | null): boolean => (name === 'pause') === (pause === null)

/** A page that names the effect. Cancel comes first, and has the focus, so that Enter that is pressed twice does nothing. */
function actPage(name: Act, pause: Pause | null, wrong?: string): Shell {
  const { title, follows } = acts[name]
  const due = isDue(name, pause)
  const state = pause === null ? 'The queue is not paused.' : pauseSentence(pause)
  const content = due
    ? html`<ul id="follows">${pause !== null && html`<li>${state}</li>`}${follows.map((each) => html`<li>${each}</li>`)}</ul>
<form method="post" action="${actPath(name)}">
${name === 'pause' && whyField('reason', longestReason, whoReads, { wrong })}
<div class="choice"><a class="button" href="${nowPath}" aria-describedby="follows"${wrong === undefined && html` autofocus`}>Cancel</a><button type="submit">${title}</button></div>
</form>`
    : html`<p>${state}</p>
<p><a class="button" href="${nowPath}">Back to the first page</a></p>`
  return { title, heading: due ? `${title}?` : title, width: 'narrow', content }
}

const whoReads = `At most ${longestReason} characters. All who ask that probe, and all whose submissions are refused, can read it: write no secret.`
