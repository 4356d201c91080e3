import { z } from 'zod'
import { ifInTime } from '../../db/in-time.ts'
import { requireAccess } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { type Html, html } from '../../http/html.ts'
import { readErased, readStates, states } from '../../lists/application-states.ts'
import { queryInteger } from '../../lists/filters.ts'
import { readOwners } from '../../lists/owner-states.ts'
import { comparedName } from '../../names.ts'
import { type Actor, allows, mayManageQueue } from '../../permissions.ts'
import { compareAll } from '../../runs/outside.ts'
import { hadSlug, type LastChange, readLastChanges } from '../../views/history.ts'
import { applicationPath, applicationsPath, withQuery } from '../addresses.ts'
import { filters, sentText, termsOf, wordsBy } from '../filter-fields.ts'
import { pageRoute, sendPage } from '../frame.ts'
import type { Sources } from '../sources.ts'
import { moves, table } from '../table.ts'
import { count, mark, nameText, notKnown, number, shortTime, time, titleText, whole } from '../words.ts'
import { mostCounted, openApplications, ownerLink, providerText, stateText, teamTable } from './states.ts'

/** /admin/applications/: the applications with their states and owners. */

const listQuery = z.strictObject({
  text: sentText,
  owner: sentText,
  state: z.enum(['', ...states]).default(''),
  page: queryInteger(1, 1_000_000).default(1),
})
type Question = z.output<typeof listQuery>

const fields = {
  text: { label: 'Words of name, slug or group' },
  owner: { label: 'Owner' },
  state: { label: 'State', words: { '': 'any', ...wordsBy(states) } },
}

const rowsOfPage = 50

export function applicationsPage(app: Api, sources: Sources): void {
  const { db, registry, runs } = sources
  const read = openApplications(sources)
  app.get(applicationsPath, pageRoute({ querystring: listQuery }), async ({ actor, query: asked }, reply) => {
    requireAccess(actor, 'view_application')
    const [found, installation, teams] = await Promise.all([
      ifInTime(readPage(asked, actor)),
      ifInTime(db.installation.findFirst({ select: { comparedAt: true } })),
      asked.owner === null ? [] : ifInTime(readOwners(db, registry, runs, actor, comparedName(asked.owner))),
    ])
    const content = html`${!allows(actor, 'view_application') && html`<p class="quiet">You see those of some owners only: your rights are bound to them.</p>`}
${filters(applicationsPath, fields, asked)}
${teams?.[0] !== undefined && teamTable([teams[0]])}
<section>${found === null ? notKnown('This takes too long: say more of what you look for.') : results(found, asked)}</section>
<form method="post" action="${applicationsPath}"><p class="quiet">Workers compare all applications with their recorded changes every 10 minutes. ${installation?.comparedAt && html`Compared at ${time(installation.comparedAt)}.`} ${mayManageQueue(actor) && html`<button type="submit">Compare now</button>`}</p></form>`
    const isLive = asked.page === 1
    return sendPage(reply, { title: 'Applications', within: applicationsPath, isLive, content })
  })

  app.post(applicationsPath, pageRoute({}), async ({ log }, reply) => {
    // It goes on when it takes longer than a page waits.
    await ifInTime(compareAll(db, registry, (error) => log.warn({ err: error }, 'applications could not be compared')))
    return reply.redirect(applicationsPath, 303)
  })

  /** States and changes are null when they could not be read in time. */
  async function readPage({ text, owner, state, page }: Question, actor: Actor) {
    const terms = text === null ? [] : termsOf(text)
    const sent = { owner: owner ?? undefined, state: state === '' ? undefined : state }
    const found = await read(actor, { sent, terms, page, size: rowsOfPage })
    const [pks, slugs] = [found.rows.map(({ pk }) => pk), found.rows.map(({ slug }) => slug)]
    const asked = text !== null && page === 1 && !slugs.includes(text)
    const isWithErased = page === 1 && (state === '' || state === 'changed_outside')
    const [changes, states, isFormer, erased] = await Promise.all([
      ifInTime(readLastChanges(db, registry, actor, pks)),
      ifInTime(readStates(db, runs, actor, { slugs })),
      asked && ifInTime(hadSlug(db, registry, text, actor)),
      isWithErased && ifInTime(readErased(db, actor, owner === null ? null : comparedName(owner), terms)),
    ])
    return { ...found, changes, states, former: isFormer === true ? text : null, erased: erased || [] }
  }
}

type FoundApplications = Awaited<ReturnType<ReturnType<typeof openApplications>>> & {
  readonly changes: ReadonlyMap<string, LastChange> | null
  readonly states: Awaited<ReturnType<typeof readStates>> | null
  readonly former: string | null
  readonly erased: readonly string[]
}

const results = (found: FoundApplications, asked: Question): Html =>
  html`<h2>${found.isCut ? `${number(mostCounted)}+ applications` : count(found.count, 'application')}</h2>
${found.former !== null && formerly(found.former)}
${found.erased.length > 0 && html`<p>${mark('warn', 'changed outside')} Deleted past the service: ${found.erased.map((slug, index) => html`${index > 0 && ', '}<a href="${applicationPath(slug)}">${slug}</a>`)}</p>`}
${found.rows.length > 0 && list(found)}
${moves({
  Before: asked.page > 1 && withQuery(applicationsPath, { ...asked, page: asked.page - 1 }),
  Next: asked.page * rowsOfPage < found.count && withQuery(applicationsPath, { ...asked, page: asked.page + 1 }),
})}`

/** An application that was deleted or renamed is in no list, and has a history. */
const formerly = (text: string): Html =>
  html`<p>None has this slug now. <a href="${applicationPath(text)}">What was done to one with the slug ${text}</a></p>`

const list = ({ rows, states: found, changes }: FoundApplications): Html =>
  table(
    'Applications',
    rows,
    {
      Name: [
        'name',
        ({ slug, name }) => html`<a href="${applicationPath(slug)}" title="${name}">${titleText(name)}</a>`,
      ],
      State: ['text', ({ slug }) => stateText(found?.get(slug))],
      Owner: ['name', ({ owner }) => owner !== null && ownerLink(owner)],
      'Last change': ['text', ({ pk }) => (changes === null ? 'not known' : lastChange(changes.get(pk)))],
      Slug: ['name', ({ slug }) => slug],
      Provider: ['name', providerText],
    },
    { idOf: ({ pk }) => `application-${pk}` },
  )

const lastChange = (last: LastChange | undefined): Html | false =>
  last !== undefined && html`${shortTime(last.at)}${last.user !== null && html` by ${whole(nameText(last.user))}`}`
