import { expect, test } from 'vitest'
import type { Tx } from '../../src/db/client.ts'
import { jobId } from '../../src/queue/define.ts'
import type { Answer } from './asker.ts'
import { dashboardOf, form, origin } from './dashboard.ts'
import { sentencesOf } from './incidents-doc.ts'
import type { Installation } from './installation.ts'
import { execute, rows, sql } from './sql.ts'
import { until } from './until.ts'

/** Runs in each of the states that docs/incidents.md names, made in the running system. */

export const lockRunOf = (tx: Tx, slug: string) => rows(tx, sql`SELECT 1 FROM runs WHERE slug = ${slug} FOR UPDATE`)

export const put = async (service: Installation, name: string, headers: Record<string, string> = {}): Promise<Answer> =>
  service.admin.submit('radius', name, { headers })

export const runOf = ({ db }: Installation, slug: string) => db.run.findFirstOrThrow({ where: { slug } })

/** Whether anything of the submission is stored. */
export async function isThere({ db }: Installation, name: string): Promise<boolean> {
  const providers = await db.provider.count({ where: { name } })
  return providers + (await db.application.count({ where: { slug: name } })) > 0
}

/** The job of an attempt, when it has ended. */
export async function endedJob({ queue }: Installation, id: string, attempt = 1) {
  const job = await until('the job to end', async () => {
    const found = await queue.getJob(jobId(id, attempt))
    return found?.finishedOn === undefined ? null : found
  })
  const { logs } = await queue.getJobLogs(job.id ?? '')
  return { state: await job.getState(), result: job.returnvalue, failure: job.failedReason, log: logs.join('\n') }
}

export type Made = { readonly id: string; readonly answer: Answer }

/** Makes a run end in each way. `name` is that of the submission. */
export function statesOf(service: Installation) {
  const { db } = service
  /** Submits. While the worker has the job and has not begun, `meanwhile` gets the run's id. */
  async function heldUp(name: string, meanwhile: (id: string) => Promise<unknown>, as = service.admin): Promise<Made> {
    const release = service.hold()
    try {
      const sending = as.submit('radius', name)
      await service.queued(1)
      const { id } = await runOf(service, name)
      await meanwhile(id)
      release()
      return { id, answer: await sending }
    } finally {
      release()
    }
  }
  const untilState = (name: string, state: string) =>
    until(`the run to be ${state}`, async () => (await runOf(service, name)).state === state)
  return {
    heldUp,
    cancelled: (name: string) => heldUp(name, () => untilState(name, 'cancelled')),
    broken: (name: string) =>
      heldUp(name, (id) => db.run.update({ where: { id }, data: { blueprint: 'v1.not.sealed.here' } })),
    exhausted: (name: string) =>
      heldUp(name, async (id) => {
        await execute(db, sql`UPDATE runs SET attempts = 5, enqueued_at = now() - interval '1 minute' WHERE id = ${id}`)
        await untilState(name, 'failed')
      }),
    vanished: (name: string) => heldUp(name, (id) => db.run.delete({ where: { id } })),
    /** Only the transaction finds the reason: the submitter is no longer active. */
    refused: async (name: string) => {
      const { pk, token } = await service.make.user({ superuser: true })
      const deactivate = () => db.user.update({ where: { pk }, data: { isActive: false } })
      return heldUp(name, deactivate, service.as(token))
    },
  }
}

/** An operator of the dashboard with all permissions for it. */
export async function operatorOf(service: Installation) {
  const dashboard = dashboardOf(service)
  const { token, username } = await service.make.user({ permissions: ['view_queue', 'manage_queue', 'view_run'] })
  const headers = { origin, cookie: await dashboard.session(token), 'content-type': form }
  return {
    username,
    get: (url: string) => dashboard.send({ method: 'GET', url, headers }),
    act: (name: string, reason = '') =>
      dashboard.send({
        method: 'POST',
        url: `/admin/${name}/`,
        headers,
        payload: new URLSearchParams({ reason }).toString(),
      }),
  }
}

/** Tests that show sentences of docs/incidents.md, and a test that finds sentences which none shows. */
export function claimsOf(sections: readonly string[], advice: readonly string[] = []) {
  const held = new Set(advice)
  test.each(sections)('every sentence of "%s" is shown here', async (section) => {
    const sentences = await sentencesOf(section)
    expect(sentences.length).toBeGreaterThan(3)
    expect(sentences.filter((sentence) => !held.has(sentence))).toEqual([])
  })
  return (sentences: readonly string[], work: () => Promise<void>): void => {
    for (const sentence of sentences) held.add(sentence)
    test(sentences.join(' '), { timeout: 60_000 }, work)
  }
}
