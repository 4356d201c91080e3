import { z } from 'zod'
import type { Db } from '../../db/client.ts'
import { ifInTime } from '../../db/in-time.ts'
import { query } from '../../db/raw.ts'
import { lifetimeS } from '../../exchange/exchange.ts'
import type { Api } from '../../http/api.ts'
import { type Html, html } from '../../http/html.ts'
import { doubtsAbout, rulesOf } from '../../models/trusted-issuer.ts'
import { type Actor, allows, mayNameUser } from '../../permissions.ts'
import { storedPipeline } from '../../pipeline.ts'
import { expiresWithinDays, expiringTokens, tokensOfLater } from '../../views/expiries.ts'
import { refusalsPath, tokensPath } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { expiring } from '../now/page.ts'
import type { Sources } from '../sources.ts'
import { jobDetails, table } from '../table.ts'
import { mark, named, nameText, notKnown, number, sentence, sentenceText, shortTime } from '../words.ts'

/** /admin/tokens/: stored access tokens that expire, trusted issuers with their rules, and the access tokens of jobs. */
export const tokensPage = (app: Api, { db }: Sources): void => {
  app.get(tokensPath, pageRoute({}), async ({ actor }, reply) => {
    const content = (await ifInTime(contentOf(db, actor))) ?? notKnown()
    return sendPage(reply, { title: 'Tokens', asOf: new Date(), within: tokensPath, content })
  })
}

async function contentOf(db: Db, actor: Actor): Promise<Html> {
  const later = await tokensOfLater(db, actor)
  return html`${!allows(actor, 'view_token') && html`<p class="quiet">You see your own tokens only: you lack the permission view_token.</p>`}
<section><h2>Stored tokens that expire within ${number(expiresWithinDays)} days, or expired lately</h2>
${expiring('Access tokens', await expiringTokens(db, actor), true)}
<p class="quiet">Others that expire later, or never: ${number(later)}.</p></section>
<section><h2>Trusted issuers</h2>
${allows(actor, 'view_trustedissuer') ? await issuersText(db, actor) : html`<p class="quiet">You lack the permission view_trustedissuer.</p>`}</section>
<section><h2>Access tokens of jobs that are valid now</h2>
<p class="quiet">To end those of a rule at once, change or delete the rule.</p>
${await jobsText(db, actor)}</section>`
}

const most = { issuers: 20, rules: 50, jobs: 200 }

async function issuersText(db: Db, actor: Actor): Promise<Html> {
  const rows = await db.trustedIssuer.findMany({ orderBy: { name: 'asc' }, take: most.issuers + 1 })
  const all = rows.map((row) => ({ ...row, rules: rulesOf(row.rules) }))
  const users = all.flatMap(({ rules }) => rules.map(({ user }) => user))
  const found = await db.user.findMany({ where: { username: { in: users }, isActive: true } })
  const active = new Set(allows(actor, 'view_user') ? found.map(({ username }) => username) : users)
  const doubtOf = (user: string) => !active.has(user) && mark('warn', 'no active user')
  if (all.length === 0)
    return html`<p>There is none. With one, the jobs of a CI system need no stored token: docs/pipelines.md shows how.</p>`
  return html`<p>A job gets an access token by the first rule that its identity token satisfies, in the order of names. The <a href="${refusalsPath}?kind=access">refusals</a> say why one got none.</p>
${all.slice(0, most.issuers).map(
  ({ name, issuer, audience, jwks, algorithms, rules }) => html`<h3>${named(nameText(name))}</h3>
<p>${named(nameText(issuer))} for the audience ${named(nameText(audience))}, signed by ${algorithms.join(' or ')} with ${jwks === null ? 'keys that are fetched' : 'the keys in its jwks'}.</p>
${doubtsAbout({ issuer, jwks, rules }).map((each) => html`<p>${mark('warn', 'Warning')} ${sentenceText(sentence(each))}</p>`)}
${
  rules.length === 0
    ? html`<p>It has no rule: its jobs get no access token.</p>`
    : table(
        `Rules of ${nameText(name)}`,
        rules.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
        {
          Rule: ['name', (rule) => nameText(rule.name)],
          Claims: ['text', ({ claims }) => lines(Object.entries(claims).map((each) => each.join(': ')))],
          User: ['name', ({ user }) => html`${named(nameText(user))} ${doubtOf(user)}`],
          Owners: ['text', ({ owners }) => lines(owners)],
          Stacks: ['text', ({ stacks }) => lines(stacks)],
        },
        { most: most.rules },
      )
}`,
)}
${all.length > most.issuers && html`<p class="quiet">There are more.</p>`}`
}

const lines = (texts: readonly string[]) =>
  texts.length === 0 ? 'any' : texts.map((text, index) => html`${index > 0 && html`<br>`}${nameText(text)}`)

const jobRow = z.object({ token: z.guid(), pk: z.int(), username: z.string(), expires: z.date(), job: storedPipeline })

/** Tokens that authenticate. What they say of their jobs are texts of others. */
async function jobsText(db: Db, actor: Actor): Promise<Html> {
  const rows = await query(db, jobRow, {
    text: `SELECT e.pk AS token, u.pk, u.username, t.expires, t.pipeline AS job
      FROM exchanged_tokens e JOIN bearer_tokens t ON t.pk = e.pk JOIN users u ON u.pk = t.user_pk AND u.is_active
      WHERE e.created_at > now() - make_interval(secs => $1) AND t.expires > now() AND ($2 OR u.pk = $3)
      ORDER BY e.created_at DESC LIMIT $4`,
    values: [lifetimeS, allows(actor, 'view_token'), actor.pk, most.jobs],
  })
  const jobs = rows.flatMap(({ job, ...row }) => (job === null ? [] : [{ ...row, job }]))
  if (jobs.length === 0) return html`<p>There is none.</p>`
  return table(`Access tokens of jobs, the newest ${number(most.jobs)}`, jobs, {
    User: ['name', ({ pk, username }) => (mayNameUser(actor, pk) ? nameText(username) : '')],
    Rule: ['name', ({ job }) => nameText(`${job.issuer}: ${job.rule}`)],
    Job: ['text', ({ token, job }) => jobDetails(token, job)],
    'Valid until': ['plain', ({ expires }) => shortTime(expires)],
  })
}
