import { z } from 'zod'
import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { Problem } from '../../errors.ts'
import { requireAccess } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { readApplications } from '../../lists/applications.ts'
import { queryInteger, queryText } from '../../lists/filters.ts'
import type { Engine } from '../../plan/engine.ts'
import { readHistory } from '../../views/history.ts'
import { applicationPath, applicationsPath } from '../addresses.ts'
import { pagePolicy } from '../frame.ts'
import { nullWhenLate } from '../late.ts'
import { applicationPage, applicationsPage, rowsOfPage } from './pages.ts'

/** The pages of applications. What a caller sees of them says the declaration of the API's list, and `readHistory`. */

const html = 'text/html; charset=utf-8'

/** helmet writes into `config`. */
const options = () => ({ config: { permission: 'anyone' } as const, helmet: pagePolicy() })

const text = queryText(200)
  .transform((sent) => sent.trim())
  .default('')

const listQuery = z.strictObject({
  text,
  owner: text,
  outside: z.enum(['', 'yes']).default(''),
  page: queryInteger(1, 1_000_000).default(1),
})

const historyQuery = z.strictObject({
  before: z
    .string()
    .regex(/^[1-9]\d{0,17}\.\d{1,6}$/)
    .optional(),
})

const entriesOfPage = 20
const mostWords = 8

export function applicationPages(app: Api, { db, engine }: { readonly db: Db; readonly engine: Engine }): void {
  const { registry } = engine
  const nameOf = (model: string) => registry.byName(model)?.displayName ?? model

  app.get(
    applicationsPath,
    { ...options(), schema: { querystring: listQuery } },
    async ({ actor, query: { outside, ...query } }, reply) => {
      requireAccess(actor, 'view_application')
      const asked = { ...query, outside: outside === 'yes' }
      const terms = asked.text.split(/\s+/u).filter((term) => term !== '')
      const sent = { owner: asked.owner || undefined, changed_outside: asked.outside || undefined }
      const question = { sent, terms: terms.slice(0, mostWords), page: asked.page, size: rowsOfPage }
      const found = await inTime(readApplications(db, engine, actor, question)).catch(nullWhenLate)
      return reply.type(html).send(applicationsPage(asked, found, actor))
    },
  )

  app.get(
    applicationPath(':slug'),
    { ...options(), schema: { params: z.object({ slug: queryText(50) }), querystring: historyQuery } },
    async ({ actor, params, query: { before = null } }, reply) => {
      requireAccess(actor, 'view_application')
      const slug = params.slug.normalize('NFC')
      const one = { sent: { slug }, terms: [], page: 1, size: 1 }
      const outside = { ...one, sent: { slug, changed_outside: true } }
      const [history, found, changed] = await Promise.all([
        inTime(readHistory(db, registry, slug, actor, { before, size: entriesOfPage })),
        inTime(readApplications(db, engine, actor, one)),
        inTime(readApplications(db, engine, actor, outside)).catch(nullWhenLate),
      ])
      const [row] = found.rows
      if (history === undefined && row === undefined)
        throw new Problem('not_found', 'There is no such application, and none had this slug, as far as you may see.')
      const { entries = [], next = null } = history ?? {}
      const isOutside = changed && changed.rows.length > 0
      return reply
        .type(html)
        .send(applicationPage({ slug, row, isOutside, entries, next, isFirst: before === null, nameOf }, actor))
    },
  )
}
