import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { attempt } from '../attempt.ts'
import type { Api } from '../http/api.ts'
import { html } from '../http/html.ts'
import { nextOf, nextQuery, nowPath, timesPath } from './addresses.ts'
import { choiceField } from './filter-fields.ts'
import { pageRoute, type Shell, sendPage, timesLink } from './frame.ts'
import { cookieOptions } from './session.ts'
import { shortTime, time, utc } from './words.ts'

/**
 * /admin/times/: the zone in which all pages write times. It stays in a cookie of the browser: the server keeps nothing, and
 * addresses that are sent to others do not have it.
 */

/** The zones that can be chosen, by the names of the IANA database. */
export const zones: readonly string[] = [utc, ...Intl.supportedValuesOf('timeZone').filter((name) => name !== utc)]

/** @returns the name under which it is listed, also for an older one; undefined for a text that is no zone */
export function zoneOf(name: string): string | undefined {
  const { timeZone } = attempt(() => new Intl.DateTimeFormat('sv', { timeZone: name }).resolvedOptions()) ?? {}
  return zones.find((each) => each === timeZone)
}

const cookieName = 'gatewright_zone'
const keptS = 400 * 86_400

export const zoneFrom = ({ cookies }: Pick<FastifyRequest, 'cookies'>): string =>
  zoneOf(cookies[cookieName] ?? utc) ?? utc

/** Writes the times of a page, which are in UTC, in the zone of the caller, and names it in the frame. */
export async function inZoneOfCaller(request: FastifyRequest, reply: FastifyReply, sent: unknown): Promise<unknown> {
  if (typeof sent !== 'string' || !String(reply.getHeader('content-type')).startsWith('text/html')) return sent
  const zone = zoneFrom(request)
  const next = reply.statusCode < 400 ? nextOf(request.url) : nowPath
  const named = sent.replace(String(timesLink()), () => String(timesLink(zone, next)))
  return zone === utc ? named : timesIn(zone, named, new Date())
}

/** The element of a time. Only `words.ts` makes it: other values are escaped. Short times have a title. */
const timeElement = /<time datetime="([\dT:.Z-]+)"( title="[^"]*")?>[^<]*<\/time>/g

const timesIn = (zone: string, text: string, now: Date): string =>
  text.replace(timeElement, (_all, iso: string, title: string | undefined) =>
    String(title === undefined ? time(new Date(iso), zone) : shortTime(new Date(iso), now, zone)),
  )

const timesPage = (zone: string, next: string, isWrong = false): Shell => ({
  title: 'Times',
  heading: 'In which zone are times shown?',
  width: 'narrow',
  content: html`<p>It is now ${time(new Date())}. This browser keeps the choice, for all pages here.</p>
${isWrong && html`<p class="alert" role="alert">There is no such zone.</p>`}
<form method="post" action="${timesPath}?next=${encodeURIComponent(next)}">
${choiceField('zone', 'Zone', zone, Object.fromEntries(zones.map((each) => [each, each])))}
<div class="choice"><a class="button" href="${next}">Cancel</a><button type="submit">Show times in this zone</button><button type="submit" id="here" name="here" hidden></button></div>
</form>`,
})

/** @property here the zone of the browser, which its script names */
const choice = z.object({ zone: z.string().max(100).default(''), here: z.string().max(100).optional() })

export function timesRoutes(app: Api): void {
  app.get(timesPath, pageRoute({ querystring: nextQuery }), async (request, reply) =>
    sendPage(reply, timesPage(zoneFrom(request), request.query.next)),
  )

  app.post(timesPath, pageRoute({ querystring: nextQuery }), async (request, reply) => {
    const { next } = request.query
    const { zone: chosen = '', here } = choice.safeParse(request.body).data ?? {}
    const zone = zoneOf(here ?? chosen)
    if (zone === undefined) return sendPage(reply.code(400), timesPage(zoneFrom(request), next, true))
    void reply.setCookie(cookieName, zone, cookieOptions(request, keptS))
    return reply.redirect(next, 303)
  })
}
