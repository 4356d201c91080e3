import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { Client, Submitted } from './client.ts'
import { isOver, me, runSummary } from './runs.ts'

/** The last lines of a program that a signal ends while the service may have a submission of it. */

const longestMs = 2_000
const found = z.object({ results: z.array(runSummary).min(1) })

/** @returns the lines about the last submission */
export async function whatIsLeft({ send }: Pick<Client, 'send'>, { requestId, run }: Submitted): Promise<string[]> {
  const ask = (path: string) => send('GET', path, { withinMs: longestMs })
  const ofJob = async () => {
    const submitter = me.parse((await ask('/core/users/me/')).body).user.pk
    return ask(`/blueprints/runs/?request_id=${encodeURIComponent(requestId)}&submitter=${submitter}&page_size=1`)
  }
  const answer = await Promise.race([
    (run === null ? ofJob() : ask(run)).catch(() => null),
    delay(longestMs, null, { ref: false }),
  ])
  const read = run === null ? found.safeParse(answer?.body).data?.results[0] : runSummary.safeParse(answer?.body).data
  const id = read?.id ?? run?.split('/').findLast((part) => part !== '')
  if (id === undefined)
    return [
      'What was sent may be applied all the same.',
      `gatewright runs --request-id ${requestId}   lists its run, once it is recorded`,
    ]
  if (read !== undefined && isOver(read))
    return [`Run ${id} has ended: ${read.state}.`, `gatewright logs ${id}   prints what became of it`]
  return [
    `Run ${id} is ${read?.state ?? 'recorded'}: it will be applied all the same.`,
    `gatewright logs -f ${id}   follows it`,
    ...(read?.state === 'running' ? [] : [`gatewright cancel ${id}    cancels it, as long as it is queued`]),
  ]
}
