import { inTime } from '../db/in-time.ts'
import type { Streams } from '../events/streams.ts'
import type { Api } from '../http/api.ts'
import { shows } from '../lists/list.ts'
import { eventsPath } from './addresses.ts'
import { operator } from './login.ts'
import type { Sources } from './now/read.ts'

/** The stream of events for the pages: what the API sends to a token, it sends to a session. */
export function liveEvents(app: Api, { db, runs }: Pick<Sources, 'db' | 'runs'>, streams: Streams): void {
  app.get(eventsPath, { sse: 'manual', config: { permission: 'anyone' } }, async (request, reply) =>
    streams.serve(request, reply, {
      kind: 'pages',
      actor: request.actor,
      again: () => inTime(operator(db, request)),
      condition: (actor) => shows(runs, { search: [] }, actor),
    }),
  )
}
