import { z } from 'zod'
import { ifInTime } from '../db/in-time.ts'
import type { Api } from '../http/api.ts'
import { type Html, html } from '../http/html.ts'
import { requestIdForm } from '../ids.ts'
import { readErased } from '../lists/application-states.ts'
import { applicationList } from '../lists/applications.ts'
import { auditList, auditOfOperators } from '../lists/audit.ts'
import { findPage } from '../lists/list.ts'
import type { ListSpec } from '../lists/listed.ts'
import { readRunRows } from '../lists/run-rows.ts'
import { userList } from '../lists/users.ts'
import { comparedName } from '../names.ts'
import { type Actor, allows, allowsSome, type Permission } from '../permissions.ts'
import { hadSlug } from '../views/history.ts'
import { readRefusals } from '../views/refusal.ts'
import { inOrder } from '../views/view.ts'
import * as at from './addresses.ts'
import { sentText, termsOf } from './filter-fields.ts'
import { pageRoute, type Shell, sendPage } from './frame.ts'
import type { Sources } from './sources.ts'
import { notKnown, outcomeMark, shortTime, titleText } from './words.ts'

/**
 * /admin/search/?q=: an application, an owner, a user, a run or a request. The declarations of the lists find them, with the rights
 * of the caller.
 */

/** @property note what tells hits of one kind apart */
type Hit = { readonly text: string; readonly href: string; readonly note?: Html | string }
type Search = (actor: Actor, text: string) => Promise<readonly Hit[]>
type HitsByKind = readonly (readonly [kind: string, hits: readonly Hit[] | null])[]

/** The most hits of a kind that are shown. One more says that there are more. */
const most = 10
const mostCounted = 1_000

const querystring = z.strictObject({ q: sentText })

export function searchRoute(app: Api, { db, registry, runs }: Sources): void {
  const applications = applicationList(registry)
  const audit = auditOfOperators(auditList(registry))

  async function find(spec: ListSpec, actor: Actor, sent: Readonly<Record<string, unknown>>, terms: string[] = []) {
    const { permission } = spec
    if (permission !== 'authenticated' && !allowsSome(actor, permission as Permission)) return []
    return (await findPage(db, spec, actor, { sent, terms, size: most + 1, mostCounted })).keys.map(String)
  }
  /** The row with this name, or else those that have its words. */
  async function named(spec: ListSpec, actor: Actor, field: string, text: string): Promise<string[]> {
    const one = await find(spec, actor, { [field]: text })
    return one.length > 0 ? one : find(spec, actor, {}, termsOf(text))
  }

  /** Slugs that no application has now: this one, with a history or runs that name it, and those of deletions past the service. */
  async function missingHits(actor: Actor, text: string): Promise<readonly Hit[]> {
    if (!allowsSome(actor, 'view_application')) return []
    const isKnown = (await hadSlug(db, registry, text, actor)) || (await find(runs, actor, { slug: text })).length > 0
    const erased = isKnown ? [] : await readErased(db, actor, null, termsOf(text))
    const slugs = isKnown ? [text] : erased.slice(0, most + 1)
    return slugs.map((slug) => ({ text: slug, href: at.applicationPath(slug), note: 'not there' }))
  }

  const kinds: Readonly<Record<string, Search>> = {
    Applications: async (actor, text) => {
      const keys = await named(applications, actor, 'slug', text)
      const rows = await db.application.findMany({ where: { pk: { in: keys } } })
      const hits = inOrder(keys, rows, ({ pk }) => pk).map(({ name, slug, owner }) => ({
        text: name,
        href: at.applicationPath(slug),
        note: `${slug}${owner === null ? '' : `, owner ${owner}`}`,
      }))
      return rows.some(({ slug }) => slug === text) ? hits : [...(await missingHits(actor, text)), ...hits]
    },
    Owners: async (actor, text) => {
      const owner = comparedName(text)
      const [one] = await find(applications, actor, { owner })
      return one === undefined ? [] : [{ text: owner, href: at.withQuery(at.applicationsPath, { owner }) }]
    },
    // The audit has all acts of a user, those on the queue too. Without view_audit, the runs are what there is to see.
    Users: async (actor, text) => {
      const keys = (await named(userList, actor, 'username', text)).map(Number)
      const select = { pk: true, username: true, name: true } as const
      const rows = await db.user.findMany({ where: { pk: { in: keys } }, select })
      const path = allows(actor, 'view_audit') ? at.auditPath : at.runsPath
      return inOrder(keys, rows, ({ pk }) => pk).map(({ username: who, name }) => {
        return { text: who, href: at.withQuery(path, { period: 'month', who }), note: name }
      })
    },
    Runs: async (actor, text) => {
      if (z.guid().safeParse(text).success) return runHits(actor, { id: [text.toLowerCase()] })
      return /^[\da-f]{8}$/i.test(text) ? runHits(actor, { period: 'month', end: text.toLowerCase() }) : []
    },
  }
  async function runHits(actor: Actor, sent: Readonly<Record<string, unknown>>): Promise<readonly Hit[]> {
    const rows = await readRunRows(db, runs, actor, await find(runs, actor, sent))
    return rows.map((run) => {
      const note = html`${shortTime(new Date(run.created_at))} ${outcomeMark(run)}`
      return { text: run.title, href: at.runPagePath(run.id), note }
    })
  }
  /** The runs of a request; else the audit of one that changed one object, or what was refused. A run may be gone before its audit. */
  async function requestHits(actor: Actor, text: string): Promise<readonly Hit[]> {
    if (!requestIdForm.test(text)) return []
    const [found, audited, { rows: refused }] = await Promise.all([
      runHits(actor, { request_id: text }),
      find(audit, actor, { id: text }),
      readRefusals(db, actor, { id: text }),
    ])
    if (found.length > 0) return found
    if (audited.length > 0)
      return [{ text: 'In the audit', href: at.withQuery(at.auditPath, { period: 'all', id: text }) }]
    return refused.length === 0 ? [] : [{ text: 'Refused', href: at.withQuery(at.refusalsPath, { id: text }) }]
  }

  app.get(at.searchPath, pageRoute({ querystring }), async ({ actor, query: { q } }, reply) => {
    const hitsOf = async (kind: string, search: Search) => [kind, await ifInTime(search(actor, q ?? ''))] as const
    const found = q === null ? [] : await Promise.all(Object.entries(kinds).map((kind) => hitsOf(...kind)))
    // No index has the ids of requests: they are searched where nothing else is found.
    if (q !== null && found.every(([, hits]) => hits?.length === 0)) found.push(await hitsOf('Requests', requestHits))
    const [hit, ...others] = found.flatMap(([, hits]) => hits ?? [])
    const isAll = found.every(([, hits]) => hits !== null)
    if (hit !== undefined && others.length === 0 && isAll) return reply.redirect(hit.href, 303)
    return sendPage(reply, searchPage(q, found))
  })
}

const searchPage = (q: string | null, found: HitsByKind): Shell => ({
  title: q === null ? 'Search' : `Search: ${q}`,
  q,
  content: html`${found.map(([kind, hits]) => hits?.length !== 0 && html`<section><h2>${kind}</h2>${hits === null ? notKnown() : list(hits)}</section>`)}
${found.every(([, hits]) => hits?.length === 0) && html`<p>${q !== null && 'Nothing is found, as far as you may see. '}Searched are the slugs, names and groups of applications, and the slugs of those that are not there now; owners; the names and e-mail addresses of users; runs, by the id, or by its last 8 characters within 30 days; and the ids of requests, where nothing else is found.</p>`}`,
})

const list = (hits: readonly Hit[]): Html =>
  html`<ul class="lines">${hits.slice(0, most).map(({ text, href, note }) => html`<li><a href="${href}">${titleText(text)}</a> <span class="quiet">${note}</span></li>`)}</ul>${hits.length > most && html`<p class="quiet">There are more: say more of it.</p>`}`
