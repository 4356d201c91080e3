import pg from 'pg'
import type { RealRuns } from './pages-runs.ts'

/** What operators ask of a large ledger: each page and list, with typical questions, the rare and the frequent of each kind. */

/** Its name and path. Some are asked by the user who submitted most of the runs and sees no others. */
export type Question = readonly [string, string, asked?: 'by the submitter of most']

export async function questions(database: string, { run: real, plan, set }: RealRuns): Promise<Question[]> {
  const client = new pg.Client({ connectionString: database, statement_timeout: 0 })
  await client.connect()
  const one = async (text: string): Promise<string> => {
    const { rows } = await client.query<{ value: unknown }>(text)
    return encodeURIComponent(String(rows[0]?.value))
  }
  const usual = await one(
    'SELECT slug AS value FROM runs WHERE slug IS NOT NULL GROUP BY slug ORDER BY count(*) DESC LIMIT 1',
  )
  const rare = await one(
    `SELECT slug AS value FROM runs WHERE slug IS NOT NULL GROUP BY slug ORDER BY count(*), slug LIMIT 1`,
  )
  const changed = await one(`SELECT name AS value FROM object_changes
    WHERE model = 'service_core.application' GROUP BY name ORDER BY count(*) DESC LIMIT 1`)
  const request = await one('SELECT request_id AS value FROM runs ORDER BY created_at OFFSET 1000 LIMIT 1')
  const applied = await one(
    `SELECT id AS value FROM runs WHERE applied AND slug IS NOT NULL AND blueprint IS NOT NULL ORDER BY created_at DESC OFFSET 100 LIMIT 1`,
  )
  const failed = await one(`SELECT id AS value FROM runs WHERE state = 'failed' ORDER BY created_at DESC LIMIT 1`)
  const large = await one('SELECT id AS value FROM runs ORDER BY cardinality(logs) DESC NULLS LAST LIMIT 1')
  const deep = await one(`SELECT round(extract(epoch FROM created_at) * 1000) || '.' || id AS value FROM runs
    ORDER BY created_at, id OFFSET 50000 LIMIT 1`)
  const most = await one(
    'SELECT u.username AS value FROM runs r JOIN users u ON u.pk = r.submitter_pk GROUP BY 1 ORDER BY count(*) DESC LIMIT 1',
  )
  const few = await one(
    'SELECT u.username AS value FROM runs r JOIN users u ON u.pk = r.submitter_pk GROUP BY 1 ORDER BY count(*) LIMIT 1',
  )
  const fewKey = await one(
    'SELECT submitter_pk AS value FROM runs WHERE submitter_pk IS NOT NULL GROUP BY 1 ORDER BY count(*) LIMIT 1',
  )
  const team = await one(
    `SELECT options->>'owner' AS value FROM runs WHERE options ? 'owner' GROUP BY 1 ORDER BY count(*) LIMIT 1`,
  )
  const oldAudit = await one('SELECT pk AS value FROM audit_rows ORDER BY pk OFFSET 200000 LIMIT 1')
  const oldRefusal = await one('SELECT pk AS value FROM refusals ORDER BY pk OFFSET 400 LIMIT 1')
  const run = await one(
    `SELECT run_id AS value FROM audit_rows WHERE run_id IS NOT NULL ORDER BY pk OFFSET 500 LIMIT 1`,
  )
  await client.end()
  const words = '9999'
  const runs = '/admin/runs/'
  const list = '/api/v3/blueprints/runs/'
  const audit = '/api/v3/core/audit/'
  const periods = ['hour', 'day', 'week', 'month', 'all'] as const
  return [
    ['floor: workers', '/admin/workers/'],
    ...['hour', 'day'].map((each): Question => [`page now, ${each}`, `/admin/?period=${each}`]),
    ...periods.map((each): Question => [`page runs, ${each}`, `${runs}?period=${each}`]),
    ...['applied', 'unchanged', 'refused', 'failed', 'cancelled', 'unknown', 'planned'].flatMap((each): Question[] => [
      [`page runs, ${each}, week`, `${runs}?period=week&outcome=${each}`],
      [`page runs, ${each}, all`, `${runs}?period=all&outcome=${each}`],
    ]),
    ['page runs, who of most, all', `${runs}?period=all&who=${most}`],
    ['page runs, who of few, all', `${runs}?period=all&who=${few}`],
    ['page runs, who of few, failed, all', `${runs}?period=all&who=${few}&outcome=failed`],
    ['page runs, no such who, all', `${runs}?period=all&who=nobody-of-this-name`],
    ['page runs, owner of few, week', `${runs}?period=week&owner=${team}`],
    ['page runs, owner of few, all', `${runs}?period=all&owner=${team}`],
    ['page runs, owner of most, all', `${runs}?period=all&owner=team-0`],
    ['page runs, no such owner, all', `${runs}?period=all&owner=no-team`],
    ['page runs, kind, all', `${runs}?period=all&kind=radius`],
    ['page runs, rare kind, all', `${runs}?period=all&kind=blueprint`],
    ['page runs, request, all', `${runs}?period=all&request=${request}`],
    ['page runs, object of much, all', `${runs}?period=all&object=application:${changed}`],
    ['page runs, object, all', `${runs}?period=all&object=application:${rare}`],
    ['page runs, words, week', `${runs}?period=week&text=${rare}`],
    ['page runs, words of one, all', `${runs}?period=all&text=${rare}`],
    ['page runs, words of some, all', `${runs}?period=all&text=${words}`],
    ['page runs, words of most, all', `${runs}?period=all&text=apply`],
    ['page runs, no such words, all', `${runs}?period=all&text=no-such-words`],
    ['page runs, deep', `${runs}?period=all&before=${deep}`],
    ['page runs, deep, failed', `${runs}?period=all&outcome=failed&before=${deep}`],
    ['page runs, by cause, hour', `${runs}?period=hour&group=cause`],
    ['page runs, by cause, week', `${runs}?period=week&group=cause`],
    ['page runs, failed by cause, week', `${runs}?period=week&outcome=failed&group=cause`],
    ['page runs, failed by cause, all', `${runs}?period=all&outcome=failed&group=cause`],
    ['page run, applied', `${runs}${applied}/`],
    ['page run, failed', `${runs}${failed}/`],
    ['page run, 10 000 entries', `${runs}${large}/`],
    ['page run, 10 000 entries, deep', `${runs}${large}/?start=9000`],
    ['page run, 1 000 entries', `${runs}${set}/`],
    ['page document', `${runs}${real}/document/`],
    ['page roll back', `${runs}${real}/roll-back/?plan=${plan}`],
    ['page applications', '/admin/applications/'],
    ['page applications, deep', '/admin/applications/?page=1000'],
    ['page applications, last', '/admin/applications/?page=2000'],
    ['page applications, words of one', `/admin/applications/?text=${rare}`],
    ['page applications, words of most', '/admin/applications/?text=s1'],
    ['page applications, owner', `/admin/applications/?owner=${team}`],
    ['page applications, owner of most', `/admin/applications/?owner=team-0`],
    ['page application of much', `/admin/applications/${usual}/`],
    ['page application', `/admin/applications/${rare}/`],
    ['page refusals', '/admin/refusals/'],
    ['page refusals, deep', `/admin/refusals/?before=${oldRefusal}`],
    ...['hour', 'day'].map(
      (each): Question => [`page now of one submitter, ${each}`, `/admin/?period=${each}`, 'by the submitter of most'],
    ),
    ['page runs of one submitter, all', `${runs}?period=all`, 'by the submitter of most'],
    ['page audit', '/admin/audit/'],
    ...['week', 'month', 'all'].map((each): Question => [`page audit, ${each}`, `/admin/audit/?period=${each}`]),
    ['page audit, rare action, all', '/admin/audit/?period=all&action=pause_queue'],
    ['page audit, rare action, month', '/admin/audit/?period=month&action=pause_queue'],
    ['page audit, who of few, all', `/admin/audit/?period=all&who=${few}`],
    ['page audit, no such who, all', '/admin/audit/?period=all&who=nobody-of-this-name'],
    ['page audit, run, all', `/admin/audit/?period=all&id=${run}`],
    ['page audit, no such id, all', '/admin/audit/?period=all&id=no-such-request'],
    ['page audit, deep', `/admin/audit/?period=all&before=${oldAudit}`],
    ['API runs', `${list}?page_size=50`],
    ['API runs, deep', `${list}?page_size=50&page=10000`],
    [
      'API runs, an hour',
      `${list}?page_size=50&created_after=${encodeURIComponent(new Date(Date.now() - 3_600_000).toISOString())}`,
    ],
    ['API runs, failed', `${list}?page_size=50&state=failed`],
    ['API runs, queued', `${list}?page_size=50&state=queued`],
    ['API runs, slug', `${list}?page_size=50&slug=${usual}`],
    ['API runs, object', `${list}?page_size=50&object=application:${changed}`],
    ['API runs, submitter of few', `${list}?page_size=50&submitter=${fewKey}`],
    ['API runs, request', `${list}?page_size=50&request_id=${request}`],
    ['API runs, words of one', `${list}?page_size=50&search=${rare}`],
    ['API runs, kind', `${list}?page_size=50&kind=radius`],
    ['API history', `/api/v3/core/applications/${usual}/history/`],
    ['API audit', `${audit}?page_size=50`],
    ['API audit, rare action', `${audit}?page_size=50&action=pause_queue`],
    ['API audit, user of few', `${audit}?page_size=50&user=${fewKey}`],
    ['API audit, run', `${audit}?page_size=50&run=${run}`],
    ['API audit, request', `${audit}?page_size=50&request_id=${request}`],
    ['API audit, search', `${audit}?page_size=50&search=${few}`],
    ['API applications', '/api/v3/core/applications/?page_size=50'],
  ]
}
