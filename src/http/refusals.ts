import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Db } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { inTime } from '../db/in-time.ts'
import { isObject } from '../json-object.ts'
import { loginPath } from '../paths.ts'
import type { Permission } from '../permissions.ts'
import { type RefusalKind, refusalGroups, refusalsKept, refusalsOfSecond } from '../views/refusal.ts'
import { isReading } from './headers.ts'

/**
 * Keeps the last accesses and submissions that were refused: without a body, and written once a second, so that refusing costs
 * nothing while it happens often.
 */

/** A refused read for want of one of these is kept, as refused writes are. Other reads are not. */
const sensitive: readonly Permission[] = ['impersonate', 'view_audit', 'view_run', 'view_token_key']

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
    for (const group of refusalGroups) {
      const order = { orderBy: { pk: 'desc' }, skip: refusalsKept, take: 1, select: { pk: true } } as const
      const [oldest] = await db.refusal.findMany({ where: group, ...order })
      if (oldest !== undefined) await db.refusal.deleteMany({ where: { ...group, pk: { lte: oldest.pk } } })
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
    const kind = kindOf(request, reply.statusCode)
    if (kind === null) return
    const row = rowOf(request, kind, reply.statusCode)
    const others = waiting.filter(({ userPk }) => (userPk === null) === (row.userPk === null))
    if (others.length < refusalsOfSecond) waiting.push(row)
  })
  app.addHook('onClose', async () => {
    clearInterval(timer)
    await writing
    await round()
  })
}

/** @returns null for an answer of which nothing is kept: a submission that was recorded is a run */
function kindOf({ method, routeOptions, failure, submission }: FastifyRequest, status: number): RefusalKind | null {
  if (failure === null || status < 400) return null
  if (routeOptions.config.takes === 'run') return (submission?.run ?? null) === null ? 'submission' : null
  const { missing = [], reason } = failure.problem ?? {}
  const isKept = isReading(method)
    ? sensitive.some((each) => missing.includes(each))
    : [401, 403].includes(status) || missing.length > 0 || reason !== undefined
  return !isKept ? null : routeOptions.url === loginPath ? 'login' : 'access'
}

function rowOf(request: FastifyRequest, kind: RefusalKind, status: number) {
  const { id, actor, method, url, routeOptions, failure, submission } = request
  const real = actor?.impersonator ?? actor
  return {
    at: new Date(),
    kind,
    route: routeOptions.url ?? '',
    code: failure?.code ?? '',
    status,
    userPk: real?.pk ?? null,
    username: real?.username ?? null,
    requestId: id,
    title: submission?.title ?? storedText(`${method} ${url.replace(/\?.*/s, '')}${slugIn(request.body)}`),
    sentence: storedText(failure?.sentence ?? ''),
  }
}

/** The application that a submission names, also one that was refused before it was read. */
const slugIn = (body: unknown): string => {
  const app = isObject(body) && isObject(body.app) ? body.app : {}
  return typeof app.slug === 'string' ? `: ${app.slug}` : ''
}

const longest = 300

/** PostgreSQL takes no NUL characters, and an error may repeat what was sent. */
const storedText = (text: string): string => text.slice(0, longest).toWellFormed().replaceAll('\0', '')
