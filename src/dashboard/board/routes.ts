import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { STATUSES } from '@bull-board/api/constants/statuses'
import { z } from 'zod'
import { ifInTime } from '../../db/in-time.ts'
import { Problem } from '../../errors.ts'
import type { Api } from '../../http/api.ts'
import { isEncoded } from '../../http/malformed.ts'
import { readRunRows } from '../../lists/run-rows.ts'
import type { Actor } from '../../permissions.ts'
import { readPause } from '../../queue/pause.ts'
import { boardPath } from '../addresses.ts'
import { pagePolicy, sendHtml } from '../frame.ts'
import type { Sources } from '../sources.ts'
import { zoneFrom } from '../times.ts'
import { boardFiles, boardPage, boardPolicy, isServed, openBoard, queuesOf, uiConfig } from './board.ts'

/** /admin/queues/: Bull Board, without its acts. The hook of the scope requires the session. */

const config = { permission: 'anyone' } as const

const maxJobsPerPage = 100

/**
 * The query of the board. The board sets no limit to its pages, and passes other values on to the queue, which fails on unknown
 * ones.
 */
const boardQuery = z.looseObject({
  activeQueue: z.string().refine(isEncoded, 'Is not percent-encoded.').optional(),
  status: z.enum(['', ...Object.values(STATUSES)], 'Unknown status.').optional(),
  jobsPerPage: z
    .string()
    .refine((text) => Number(text) <= maxJobsPerPage, `At most ${maxJobsPerPage}.`)
    .optional(),
})
const schema = { params: z.record(z.string(), z.string()), querystring: boardQuery }

export function boardRoutes(app: Api, { db, queue, runs }: Sources): void {
  const board = openBoard()
  /** The cause that the page of a run shows this caller, and else its sentence. Without the database, the board shows codes. */
  const causesFor = (actor: Actor) => async (ids: readonly string[]) => {
    const found = ids.length === 0 ? [] : await ifInTime(readRunRows(db, runs, actor, ids)).catch(() => null)
    return new Map((found ?? []).map(({ id, cause, sentence }) => [id, cause ?? sentence ?? '']))
  }
  for (const path of [board.pages.route].flat())
    app.get(`${boardPath}${path}`, { config, schema }, async (request, reply) => {
      reply.helmet(boardPolicy)
      return sendHtml(reply, boardPage(board, request.actor, zoneFrom(request)))
    })

  const files = listFiles(boardFiles)
  // helmet writes into `config`, so this route has one of its own.
  const options = { config: { ...config }, helmet: pagePolicy(), schema }
  app.get(`${boardPath}/static/*`, options, async ({ params }, reply) => {
    const file = files.get(params['*'] ?? '')
    if (file === undefined) throw new Problem('not_found', 'There is nothing here.')
    return reply
      .type(file.type)
      .header('Cache-Control', file.caching)
      .send(await readFile(file.path))
  })

  for (const { route, handler } of board.routes.filter(isServed))
    for (const path of [route].flat())
      app.get(`${boardPath}${path}`, { config, schema }, async ({ actor, params, query }, reply) => {
        const queues = queuesOf(queue, await readPause(queue, db), causesFor(actor))
        const request = { queues, uiConfig, params, query, body: {}, headers: {} }
        const answer = await Promise.resolve(handler(request)).catch((error: unknown) => {
          const reason = error instanceof Error ? error.message : error
          throw new Problem('unavailable', `The queue is away, or refused: ${reason}`, { cause: error })
        })
        return reply.code(answer.status ?? 200).send(answer.body)
      })
  // All other functions of the board have no purpose here.
  app.route({
    method: ['DELETE', 'GET', 'PATCH', 'POST', 'PUT'],
    url: `${boardPath}/api/*`,
    config,
    handler: async () => {
      throw new Problem('not_found', 'There is nothing here.')
    },
  })
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** `main.f10757109b.js`: a changed file gets a new name. */
const hashed = /\.[0-9a-f]{8,}\.\w+$/

/** The files of a folder that may be served, by their paths in it. A request is looked up here; no path that a client sent is opened. */
const listFiles = (folder: string) =>
  new Map(
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap((name) => {
      const type = types[extname(name)]
      const caching = hashed.test(name) ? 'private, max-age=31536000, immutable' : 'private, no-cache'
      return type === undefined ? [] : [[name, { path: join(folder, name), type, caching }] as const]
    }),
  )
