import { parseArgs } from 'node:util'
import { connect } from '../src/db/client.ts'
import type { Asker } from '../test/support/asker.ts'
import { makers } from '../test/support/make.ts'
import { measureIn } from './child.ts'
import type { LoadTask } from './load.ts'
import type { Measured } from './measure.ts'
import type { ReadTask } from './read.ts'
import { openDatabase, openStand, type Stand } from './stand.ts'
import { submission } from './submission.ts'

/**
 * What one caller at its limits costs another: p99 of a small PUT and of `me`, alone and beside each kind of load, with the
 * limits that are set as shipped. Both callers are deployers; only one is greedy.
 */

export const usage = `npm run bench -- caller [options]
  --backend <redis|postgres>  where the queue lives (redis)
  --seconds <n>               of each measurement (10)
  --only <name>               look-ups, async, sets or heavy: one kind of load (all)`

const base = '/api/v3'
const setSize = 2_500

/** What the greedy caller repeats. */
type Greed = { readonly clients: number; readonly path: string; readonly async: boolean; body(number: number): string }

const entries = (list: readonly object[]): string =>
  JSON.stringify({ version: 1, metadata: { name: 'greed' }, entries: list })

const lookUps = (count: number, number: number): string =>
  `version: 1\nmetadata: { name: greed }\nentries:\n${Array.from(
    { length: count },
    (_, index) =>
      `  - { model: service_core.application, identifiers: { slug: "greed-${index}" }, attrs: { name: "greed", meta_description: !Format ["%s", !Find [service_core.group, [name, "none ${number} ${index}"]]] } }\n`,
  ).join('')}`

const greeds: Readonly<Record<string, Greed>> = {
  // Refused: more look-ups than a document may have.
  'look-ups': {
    ...{ clients: 12, path: '/blueprints/?dry_run=true', async: false },
    body: (number) => lookUps(number % 2 === 0 ? 1_000 : 5_000, number),
  },
  async: {
    ...{ clients: 8, path: '/core/transactional/applications/', async: true },
    body: (number) => submission(`greed-async-${number}`),
  },
  sets: {
    ...{ clients: 2, path: '/blueprints/', async: true },
    body: (number) =>
      JSON.stringify(
        Array.from({ length: setSize }, (_, index) => JSON.parse(submission(`greed-set-${number}-${index}`))),
      ),
  },
  heavy: {
    ...{ clients: 12, path: '/blueprints/?dry_run=true', async: false },
    body: (number) =>
      entries(
        Array.from({ length: 2_000 }, (_, index) => ({
          ...{ model: 'service_core.application', identifiers: { slug: `greed-${number}-${index}` } },
          attrs: { name: `Greed ${number} ${index}`, meta_description: 'x'.repeat(2_000) },
        })),
      ),
  },
}

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      backend: { type: 'string', default: 'redis' },
      seconds: { type: 'string', default: '10' },
      only: { type: 'string' },
    },
  })
  const { backend, only } = values
  if (backend !== 'redis' && backend !== 'postgres') throw new Error(`--backend ${backend}: it takes redis or postgres`)
  const names = only === undefined ? Object.keys(greeds) : [only]
  const database = await openDatabase(undefined)
  try {
    for (const name of names) {
      const greed = greeds[name]
      if (greed === undefined) throw new Error(`--only ${name}: it takes ${Object.keys(greeds).join(', ')}`)
      // A queue of its own for each: what the load before left waiting is not measured.
      const stand = await openStand(database, backend, { limits: 'shipped' })
      try {
        await measureBeside(stand, name, greed, Number(values.seconds))
      } finally {
        await stand.close()
      }
    }
  } finally {
    await database.close()
  }
}

async function measureBeside(stand: Stand, name: string, greed: Greed, seconds: number): Promise<void> {
  const [greedy, other] = await deployers(stand)
  const victim = { ...stand, token: other }
  await measure(victim, 'warm', 3)
  const alone = await measure(victim, 'alone', seconds)
  const end = new AbortController()
  const load = repeat({ ...stand, token: greedy }, greed, end.signal)
  const beside = await measure(victim, 'beside', seconds)
  end.abort()
  const tally = await load
  const line = (what: 'put' | 'me') => {
    const [a, b] = [alone[what], beside[what]]
    return `  ${what.padEnd(3)} p50 ${a.p50.toFixed(1)} -> ${b.p50.toFixed(1)} ms, p99 ${a.p99.toFixed(1)} -> ${b.p99.toFixed(1)} ms (${(b.p99 / a.p99).toFixed(1)}x), at most ${b.max.toFixed(0)} ms, ${b.failures} failed${b.failure === null ? '' : `: ${b.failure}`}`
  }
  const answers = [...tally].map(([status, count]) => `${count} of ${status}`).join(', ')
  console.log(
    [`${name}: ${greed.clients} requests at once of one caller, answered ${answers}`, line('put'), line('me')].join(
      '\n',
    ),
  )
}

/** Two service accounts of the deployers' group. @returns their tokens */
async function deployers({ database }: Stand): Promise<[string, string]> {
  const { db } = connect(database, { applicationName: 'gatewright-bench', max: 1 })
  const make = makers(db, () => ({}) as Asker)
  const { pk } = await db.role.findFirstOrThrow({
    where: { permissions: { has: 'add_oauth2provider' } },
    select: { pk: true },
  })
  const { pk: group } = await make.group({ roles: [pk] })
  const users = [await make.user({ groups: [group] }), await make.user({ groups: [group] })] as const
  await db.$disconnect()
  return [users[0].token, users[1].token]
}

/** @returns how often each status was answered */
async function repeat({ url, token }: Stand, greed: Greed, end: AbortSignal): Promise<Map<number, number>> {
  const tally = new Map<number, number>()
  let number = 0
  const client = async () => {
    while (!end.aborted) {
      number += 1
      const answer = await fetch(`${url}${base}${greed.path}`, {
        method: 'PUT',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': greed.body === greeds['look-ups']?.body ? 'application/yaml' : 'application/json',
          ...(greed.async && { prefer: 'respond-async' }),
        },
        body: greed.body(number),
      })
      await answer.body?.cancel()
      tally.set(answer.status, (tally.get(answer.status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: greed.clients }, client))
  return tally
}

async function measure(
  { url, token }: Stand,
  prefix: string,
  seconds: number,
): Promise<{ put: Measured; me: Measured }> {
  const put: LoadTask = { url, token, prefix, clients: 1, seconds }
  const me: ReadTask = { url: `${url}${base}/core/users/me/`, token, clients: 1, seconds }
  const [first, second] = await Promise.all([measureIn('load.ts', put), measureIn('read.ts', me)])
  return { put: first, me: second }
}
