import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Db } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { inTime } from '../db/in-time.ts'
import { storable } from '../models/syntax.ts'
import { refusalRings, refusalsKept, refusalsOfSecond } from '../views/refusal.ts'

/**
 * Keeps the last submissions that were refused before they were recorded as runs: without a body, and written once a second,
 * so that refusing costs nothing while it happens often.
 */

const everyMs = 1_000

/** Adds the hooks. A process that is killed loses the refusals of its last second. */
export function keepRefusals(app: FastifyInstance, db: Db): void {
  let waiting: Prisma.RefusalCreateManyInput[] = []
  let writing: Promise<void> | undefined

  async function write(): Promise<void> {
    const data = waiting
    waiting = []
    if (data.length === 0) return
    await db.refusal.createMany({ data })
    for (const ring of refusalRings) {
      const order = { orderBy: { pk: 'desc' }, skip: refusalsKept, take: 1, select: { pk: true } } as const
      const [oldest] = await db.refusal.findMany({ where: ring, ...order })
      if (oldest !== undefined) await db.refusal.deleteMany({ where: { ...ring, pk: { lte: oldest.pk } } })
    }
  }
  const round = () => {
    writing ??= inTime(write())
      .catch(() => {})
      .finally(() => {
        writing = undefined
      })
    return writing
  }
  const timer = setInterval(() => void round(), everyMs).unref()

  app.addHook('onResponse', async (request, reply) => {
    const { routeOptions, failure, submission } = request
    const isRefused =
      routeOptions.config.takes === 'run' && reply.statusCode >= 400 && (submission?.run ?? null) === null
    if (!isRefused || failure === null) return
    const row = rowOf(request, reply.statusCode)
    const others = waiting.filter(({ userPk }) => (userPk === null) === (row.userPk === null))
    if (others.length < refusalsOfSecond) waiting.push(row)
  })
  app.addHook('onClose', async () => {
    clearInterval(timer)
    await writing
    await round()
  })
}

function rowOf({ id, actor, routeOptions, failure, submission }: FastifyRequest, status: number) {
  const real = actor?.impersonator ?? actor
  return {
    at: new Date(),
    route: routeOptions.url ?? '',
    code: failure?.code ?? '',
    status,
    userPk: real?.pk ?? null,
    username: real?.username ?? null,
    requestId: id,
    title: submission?.title ?? null,
    sentence: sentenceOf(failure?.sentence ?? ''),
  }
}

const longest = 300

/** PostgreSQL takes no NUL characters, and an error may repeat what was sent. */
function sentenceOf(text: string): string {
  const cut = text.slice(0, longest).toWellFormed()
  return storable(cut) === undefined ? cut : cut.replaceAll('\u0000', '')
}
