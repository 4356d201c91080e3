import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { measureIn } from './child.ts'
import type { LoadTask } from './load.ts'
import type { Measured } from './measure.ts'
import { openDatabase, openStand, type Stand } from './stand.ts'

/**
 * What a set costs: applications with their providers in one document. Its floor is the same rows by one statement for each
 * table, as COPY would send them. A small PUT is measured alone, and while a set is applied.
 */

export const usage = `npm run bench -- sets [options]
  --backend <redis|postgres>  where the queue lives (redis)
  --sizes <n,n>               applications in a set (1000,5000)
  --beside <n>                applications of the set beside which small PUTs are measured; 0 leaves it out (2500)`

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      backend: { type: 'string', default: 'redis' },
      sizes: { type: 'string', default: '1000,5000' },
      beside: { type: 'string', default: '2500' },
    },
  })
  const { backend } = values
  if (backend !== 'redis' && backend !== 'postgres') throw new Error(`--backend ${backend}: it takes redis or postgres`)
  const database = await openDatabase(undefined)
  try {
    const stand = await openStand(database, backend)
    try {
      await apply(stand, body('warm', 50))
      for (const size of values.sizes.split(',').map(Number)) await measureSet(stand, size)
      if (Number(values.beside) > 0) await measureBeside(stand, Number(values.beside))
    } finally {
      await stand.close()
    }
  } finally {
    await database.close()
  }
}

type Outcome = { readonly ms: number; readonly logs: readonly string[]; readonly applied: boolean }

/** Applies as a client that does not wait, and asks for the run. */
async function apply({ url, token }: Stand, sent: string, query = ''): Promise<Outcome> {
  const from = performance.now()
  const headers = { authorization: `Bearer ${token}` }
  const asked = await fetch(`${url}/api/v3/blueprints/${query}`, {
    method: 'PUT',
    headers: { ...headers, 'content-type': 'application/json', prefer: 'respond-async' },
    body: sent,
  })
  const answer = (await asked.json()) as { run?: string }
  if (asked.status !== 202 || answer.run === undefined)
    return {
      ms: performance.now() - from,
      applied: false,
      logs: [`${asked.status} ${JSON.stringify(answer).slice(0, 300)}`],
    }
  for (;;) {
    const found = await fetch(`${url}${answer.run}?include_blueprint=false`, { headers })
    const run = (await found.json()) as { state: string; applied: boolean; logs: string[] }
    if (['done', 'failed', 'cancelled'].includes(run.state)) return { ms: performance.now() - from, ...run }
    await delay(25)
  }
}

const submission = (name: string) => ({
  app: { name, slug: name, meta_description: 'An application of a set' },
  provider_model: 'service_providers_oauth2.oauth2provider',
  provider: {
    name,
    authorization_flow: 'default-authorization-explicit',
    property_mappings: ['OpenID scope openid'],
    redirect_uris: [{ matching_mode: 'strict', url: `https://${name}.example.com/callback` }],
  },
})

const namesOf = (prefix: string, size: number) => Array.from({ length: size }, (_, index) => `${prefix}-${index}`)
const body = (prefix: string, size: number) => JSON.stringify(namesOf(prefix, size).map(submission))

async function measureSet(stand: Stand, size: number): Promise<void> {
  const prefix = `set${size}`
  const sent = body(prefix, size)
  const worker = stand.processes.worker ?? 0
  const before = memoryMb(worker, 'VmRSS')
  const first = await apply(stand, sent)
  const peak = memoryMb(worker, 'VmHWM')
  const floor = await insertRows(stand, prefix)
  const again = await apply(stand, sent)
  const broken = await apply(stand, JSON.stringify([...namesOf(`broken${size}`, size - 1).map(submission), wrong]))
  const left = await count(stand, `broken${size}-%`)
  print(`${size} applications with providers, ${(sent.length / 1e6).toFixed(1)} MB of JSON`, [
    `applied in ${seconds(first.ms)}, ${(first.ms / floor).toFixed(0)}x the floor (${seconds(floor)})`,
    `again, nothing to do, in ${seconds(again.ms)}`,
    `an error in the last entry: refused in ${seconds(broken.ms)}, ${left} rows left`,
    `memory of the worker ${before} MB -> at most ${peak} MB`,
  ])
  for (const { applied, logs } of [first, again])
    if (!applied) console.log(`  NOT APPLIED: ${logs.slice(-3).join('; ')}`)
  if (!again.logs.every((line) => line.endsWith('unchanged'))) console.log('  NOT UNCHANGED')
}

const wrong = {
  ...submission('wrong'),
  provider: { ...submission('wrong').provider, authorization_flow: '6f7e0000-0000-4000-8000-00000000ffff' },
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`

function print(title: string, lines: readonly string[]): void {
  console.log([title, ...lines.map((line) => `  ${line}`)].join('\n'))
}

function memoryMb(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const [, kb = 'NaN'] = new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kb) / 1_024)
}

/** The rows of the set once more, under other names: what the database alone takes. @returns milliseconds */
async function insertRows({ database }: Stand, prefix: string): Promise<number> {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  try {
    const { rows } = await client.query(
      `SELECT to_jsonb(p) - 'pk' AS provider, to_jsonb(a) - 'provider_pk' AS application
        FROM applications a JOIN providers p ON p.pk = a.provider_pk WHERE a.slug LIKE $1`,
      [`${prefix}-%`],
    )
    const from = performance.now()
    await client.query('BEGIN')
    await client.query(
      `INSERT INTO providers (uuid, kind, name, authorization_flow, invalidation_flow, oauth2_client_id, settings, secrets)
        SELECT gen_random_uuid(), kind, 'floor ' || name, authorization_flow, invalidation_flow, 'floor ' || name, settings, secrets
        FROM jsonb_populate_recordset(NULL::providers, $1)`,
      [JSON.stringify(rows.map(({ provider }) => provider))],
    )
    await client.query(
      `INSERT INTO applications (pk, name, slug, meta_description)
        SELECT gen_random_uuid(), name, 'floor' || slug, meta_description FROM jsonb_populate_recordset(NULL::applications, $1)`,
      [JSON.stringify(rows.map(({ application }) => application))],
    )
    await client.query('COMMIT')
    return performance.now() - from
  } finally {
    await client.end()
  }
}

async function count({ database }: Stand, like: string): Promise<number> {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  const { rows } = await client.query('SELECT count(*)::integer AS count FROM applications WHERE slug LIKE $1', [like])
  await client.end()
  return rows[0].count
}

const load = { clients: 2, seconds: 8 } as const

async function measureBeside(stand: Stand, size: number): Promise<void> {
  const small = (prefix: string) =>
    measureIn('load.ts', {
      ...{ url: stand.url, token: stand.token, prefix, what: 'apply' as const, ...load },
    } satisfies LoadTask)
  await small('warm-small')
  const alone = await small('alone')
  let sets = 0
  let goesOn = true
  const applying = (async () => {
    while (goesOn) {
      sets += 1
      const { applied, logs } = await apply(stand, body(`beside${sets}`, size))
      if (!applied) console.log(`NOT APPLIED: ${logs.slice(-2).join('; ')}`)
    }
  })()
  await delay(200)
  const beside = await small('beside')
  goesOn = false
  await applying
  const facts = ({ p50, p99, max, perSecond, failures }: Measured) =>
    `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, at most ${max.toFixed(0)} ms, ${perSecond.toFixed(0)} per s, ${failures} failed`
  print(`a small PUT, ${load.clients} clients`, [
    `alone: ${facts(alone)}`,
    `beside sets of ${2 * size} entries, one after the other (${sets}): ${facts(beside)}`,
    `p99 ${(beside.p99 / alone.p99).toFixed(1)}x`,
  ])
}
