import { setTimeout as delay } from 'node:timers/promises'
import type { Submitted } from './deliver.ts'
import { idOf, isOver, readMe, readRun, readRuns } from './runs.ts'

/** The last lines of a program that a signal ends while the service may have a submission of it. */

const longestMs = 2_000

/** @returns the lines about the last submission */
export async function whatIsLeft({ client: shown, requestId, run }: Submitted): Promise<string[]> {
  const client = { ...shown, waiting: () => {} }
  const ofJob = async () => {
    const { pk } = await readMe(client, longestMs)
    const query = { request_id: requestId, submitter: String(pk), page_size: '1' }
    return (await readRuns(client, query, longestMs))[0]
  }
  const found = await Promise.race([
    (run === null ? ofJob() : readRun(client, run, longestMs)).catch(() => undefined),
    delay(longestMs, undefined, { ref: false }),
  ])
  const id = found?.id ?? (run === null ? undefined : idOf(run))
  if (id === undefined)
    return [
      'What was sent may be applied all the same.',
      `gatewright runs --request-id ${requestId}   lists its run, once it is recorded`,
    ]
  if (found !== undefined && isOver(found))
    return [`Run ${id} has ended: ${found.state}.`, `gatewright logs ${id}   prints what became of it`]
  return [
    `Run ${id} is ${found?.state ?? 'recorded'}: it will be applied all the same.`,
    `gatewright logs -f ${id}   follows it`,
    ...(found?.state === 'running' ? [] : [`gatewright runs cancel ${id}   cancels it, as long as it is queued`]),
  ]
}
