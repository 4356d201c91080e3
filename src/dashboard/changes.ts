import { z } from 'zod'
import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { queryInteger, queryText } from '../lists/filters.ts'
import { longestRevision } from '../waits/revision.ts'
import { longestWait } from '../waits/waits.ts'
import { changesPath } from './addresses.ts'
import { operator } from './login.ts'
import type { Sources } from './sources.ts'

const schema = {
  querystring: z.strictObject({
    since: queryText(longestRevision).optional(),
    wait: queryInteger(0, longestWait).default(0),
  }),
}

/** `{"revision": "..."}`, as soon as it is not the one that the page has: what the API answers to a token, for a session. */
export function changesRoute(app: Api, { db, waits }: Sources): void {
  app.get(changesPath, { config: { permission: 'anyone' }, schema }, async (request, reply) => {
    const { since, wait: seconds } = request.query
    const revision = await waits.untilChanged(request, reply, since, { kind: 'pages', seconds })
    if ((await inTime(operator(db, request))) === null)
      throw new Problem('not_authenticated', 'The session has ended: log in again.')
    return reply.send({ revision })
  })
}
