import type { MutantsOf } from '../mutant.ts'

const life = 'test/runs/life.test.ts'
const work = 'test/runs/work.test.ts'
const reconcile = 'test/runs/reconcile.test.ts'
const ledgerTest = 'test/runs/ledger.test.ts'
const retention = 'test/runs/retention.test.ts'
const subscribe = 'test/runs/subscribe.test.ts'
const reseal = 'test/runs/reseal.test.ts'
const twins = 'test/simulation/twins.test.ts'
const ceiling = 'test/api/token-ceiling.test.ts'
const plans = 'test/api/plans.test.ts'
const deliveries = 'test/api/deliveries.test.ts'

/** What is remembered of a submission. */
export default {
  'src/runs/life.ts': [
    {
      from: 'attempts < maxAttempts ?',
      to: 'attempts <= maxAttempts ?',
      why: 'a run is enqueued six times',
      tests: [life],
    },
    {
      from: "return state === 'queued' && attempts > 0 ? { state, attempts: attempts - 1 } : life",
      to: "return state === 'queued' ? { state, attempts: attempts - 1 } : life",
      why: 'attempts become negative',
      tests: [life],
    },
    {
      from: "return state === 'queued' ? { state: 'running', attempts } : life",
      to: "return state !== 'running' ? { state: 'running', attempts } : life",
      why: 'a finished run is locked again',
      tests: [life],
    },
    {
      from: "return state === 'running' ? { state: 'done', attempts } : life",
      to: "return state === 'running' || state === 'failed' ? { state: 'done', attempts } : life",
      why: 'a failed run is finished',
      tests: [life],
    },
    {
      from: "return state === 'queued' ? { state: 'cancelled', attempts } : life",
      to: "return state === 'queued' || state === 'running' ? { state: 'cancelled', attempts } : life",
      why: 'a run that a worker has is cancelled',
      tests: [life],
    },
    {
      from: "state === 'done' || state === 'failed' || state === 'cancelled'",
      to: "state === 'done' || state === 'failed'",
      why: 'a cancelled run is not finished',
      tests: [work],
    },
    {
      from: '(attempts <= 3 ? 1 :',
      to: '(attempts < 3 ? 1 :',
      why: 'the client of a run whose worker was killed three times waits longer',
      tests: [life, reconcile],
    },
  ],
  'src/runs/ledger.ts': [
    {
      from: 'WHERE clock_timestamp() < to_timestamp($10::float8 / 1000)',
      to: 'WHERE $10::float8 > 0',
      why: 'a record that arrives after its time is applied although its 404 was final',
      tests: [ledgerTest],
    },
    {
      from: 'keyring.seal(blueprint, sealedColumn(id,',
      to: 'String(blueprint + sealedColumn(id,',
      why: 'documents are stored in plain text',
      tests: ['test/api/transactional-secrets.test.ts', reseal],
    },
    {
      from: 'ceiling: ceiling && [...ceiling].sort()',
      to: 'ceiling: undefined && ceiling',
      why: 'a run forgets the ceiling of the token that submitted it',
      tests: [ceiling],
    },
    {
      from: 'impersonator: real, ceiling',
      to: 'impersonator: undefined && real, ceiling',
      why: 'a run forgets that its submitter was impersonated',
      tests: ['test/rights/rights-taken-meanwhile.test.ts', 'test/api/logs.test.ts', ceiling],
    },
    {
      from: 'ELSE older.sets = 0 AND pg_try_advisory_xact_lock(',
      to: 'ELSE older.sets >= 0 AND pg_try_advisory_xact_lock(0 * older.sets::integer + ',
      why: 'sets of a submitter are not worked on in their order',
      tests: ['test/runs/work.test.ts'],
    },
    {
      from: 'options.lane ?? 0) < laneOfSets) return true',
      to: 'options.lane ?? 0) < 100) return true',
      why: 'the sets of one user take all slots',
      tests: ['test/runs/work.test.ts', 'test/queue/turns-of-sets.test.ts'],
    },
    {
      from: 'WITH runs AS (SELECT * FROM runs WHERE id = $1::uuid FOR UPDATE)',
      to: 'WITH runs AS (SELECT * FROM runs WHERE id = $1::uuid)',
      why: 'two workers work on one run',
      tests: [work],
    },
    {
      from: 'created_at < now() - make_interval(secs => $2) AS "isStale"',
      to: 'created_at > now() + make_interval(secs => $2) AS "isStale"',
      why: 'a run that was queued for more than an hour is applied',
      tests: [retention],
    },
    {
      from: 'coalesce(generated_until > now(), false) AS shows',
      to: 'generated_until IS NOT NULL AS shows',
      why: 'generated values are shown for longer than was promised',
      tests: ['test/api/runs.test.ts', 'test/api/transactional-secrets.test.ts'],
    },
    {
      from: "WHERE id = $1::uuid AND state = 'queued' RETURNING id`",
      to: 'WHERE id = $1::uuid RETURNING id`',
      why: 'a run that was applied is cancelled afterwards',
      tests: [subscribe],
    },
    {
      from: "finished_at = excluded.finished_at WHERE runs.state = 'queued' RETURNING id`",
      to: 'finished_at = excluded.finished_at RETURNING id`',
      why: 'a run that was applied is recorded as cancelled',
      tests: [ledgerTest],
    },
    {
      from: 'UPDATE runs SET enqueued_at = now() + make_interval(secs => $2::float8 / 1000)',
      to: 'UPDATE runs SET enqueued_at = now() + make_interval(secs => $2::float8 * 0)',
      why: 'a run that is left to a newer worker is counted as an attempt at once',
      tests: [twins, 'test/upgrade/mixed-versions.test.ts'],
    },
  ],
  'src/runs/finish.ts': [
    {
      from: "keyring.seal(JSON.stringify(generated), sealedColumn(run.id, 'generated'))",
      to: 'JSON.stringify(generated)',
      why: 'generated values are stored in plain text',
      tests: [work],
    },
    {
      from: '  if (!applied) {',
      to: '  if (applied === null) {',
      why: 'a refused run has an audit row',
      tests: [work],
    },
    {
      from: 'document !== null && audited.length === 0',
      to: 'document !== null',
      why: 'a run that changed something takes the documents of earlier runs',
      tests: [retention],
    },
    {
      from: 'document !== null && audited.length === 0',
      to: 'document === null && audited.length === 0',
      why: 'runs that change nothing all keep their document',
      tests: [retention],
    },
    {
      from: 'AND runs.document = $2::bytea',
      to: 'AND $2::bytea IS NOT NULL',
      why: 'a run drops the other documents too',
      tests: [retention],
    },
    {
      from: "AND runs.state <> 'queued' AND runs.created_at < latest.created_at",
      to: "AND runs.state <> 'queued' AND runs.id <> latest.id",
      why: 'later copies of a document are dropped too',
      tests: [retention],
    },
  ],
  'src/runs/worker-ledger.ts': [
    {
      from: 'if (isPlan) beginPlan(tx)',
      to: '',
      why: 'a plan cannot be undone',
      tests: [work],
    },
    {
      from: '  endPlan(tx)',
      to: '',
      why: 'a plan is applied',
      tests: [work],
    },
    {
      from: 'applied: false, audited: [], generated: {}, planTag',
      to: 'applied: false, audited: [], planTag',
      why: 'a plan keeps generated values',
      tests: [work],
    },
    {
      from: 'if (plan.document === null || !document.equals(plan.document))',
      to: 'if (plan.document === null)',
      why: 'the reviewed plan may be of another document',
      tests: [plans],
    },
    {
      from: 'conditions.reviewed === null ? undefined :',
      to: 'conditions.reviewed !== null ? undefined :',
      why: 'an apply of a reviewed plan does not look at the plan',
      tests: [plans],
    },
    {
      from: 'const submitter = { pk: run.submitterPk, ...submitterOf(run) }',
      to: 'const submitter = { pk: run.submitterPk }',
      why: 'a run is applied without the ceiling and the real user of its submission',
      tests: [ceiling, 'test/rights/rights-taken-meanwhile.test.ts'],
    },
  ],
  'src/runs/idempotency.ts': [
    {
      from: 'k.request = $3::bytea AS "isSame"',
      to: '($3::bytea IS NOT NULL) AS "isSame"',
      why: 'something else under the same key gets the outcome of the first',
      tests: [deliveries],
    },
    {
      from: "(r.state = 'cancelled' AND r.options->>'cancelled_by' IS NULL) OR",
      to: '',
      why: 'a cancelled submission keeps its key',
      tests: [deliveries],
    },
    {
      from: "r.id IS NULL OR (r.state = 'cancelled'",
      to: "(r.state = 'cancelled'",
      why: 'a run that a crash lost keeps its key',
      tests: [deliveries],
    },
    {
      from: "AND r.options->>'cancelled_by' IS NULL",
      to: '',
      why: 'a run that a user cancelled is applied when its request comes again',
      tests: ['test/api/run-cancel.test.ts'],
    },
    {
      from: "OR (r.state = 'failed' AND r.reason = 'unavailable')",
      to: '',
      why: 'a failed run that no worker finished keeps its key',
      tests: [deliveries],
    },
    {
      from: "(r.state = 'failed' AND r.reason = 'unavailable')",
      to: "(r.state = 'failed')",
      why: 'a run that failed by a bug frees its key',
      tests: [deliveries],
    },
    {
      from: 'OR k.created_at < now() - make_interval(hours => $4::integer)',
      to: 'OR $4::integer < 0',
      why: 'a key is kept for longer than a day',
      tests: [deliveries],
    },
    {
      from: 'WHERE k.submitter_pk = $1::integer AND k.key = $2`',
      to: 'WHERE $1::integer > 0 AND k.key = $2`',
      why: 'a key of another submitter counts',
      tests: [deliveries],
    },
    {
      from: "brokenConstraint(error)?.constraint?.includes('idempotency_keys_pkey') === true",
      to: 'brokenConstraint(error) === undefined && true',
      why: 'simultaneous requests under one key are errors',
      tests: [deliveries],
    },
  ],
} satisfies MutantsOf
