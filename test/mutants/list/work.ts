import type { MutantsOf } from '../mutant.ts'

const work = 'test/runs/work.test.ts'
const retention = 'test/runs/retention.test.ts'
const simulation = 'test/simulation/simulation.test.ts'
const twins = 'test/simulation/twins.test.ts'
const reconcile = 'test/runs/reconcile.test.ts'
const erase = 'test/runs/erase.test.ts'
const runApply = 'test/api/run-apply.test.ts'
const plans = 'test/api/plans.test.ts'

/** A run is executed once. */
export default {
  'src/runs/work.ts': [
    {
      from: 'error instanceof CommitUnknown || (isTransient(error)',
      to: '(isTransient(error)',
      why: 'a commit of unknown outcome fails the run',
      tests: ['test/runs/work.test.ts'],
    },
    {
      from: 'error instanceof CommitUnknown || (isTransient(error)',
      to: 'error instanceof CommitUnknown || (error === undefined',
      why: 'a lost connection fails the run',
      tests: [work],
    },
    {
      from: '    if (canRetry(error) || isLockTimeout(error)) {',
      to: '    if (error === undefined) {',
      why: 'a run whose tries were all lost fails, instead of waiting for the reconciler',
      tests: [simulation, twins],
    },
    {
      from: 'error instanceof CommitUnknown ? await readEnd(worker, task.id) : undefined',
      to: 'undefined',
      why: 'after a commit of unknown outcome, its row is not read',
      tests: [simulation, twins],
    },
    {
      from: 'if (!(error instanceof Refusal)) throw error',
      to: 'throw error',
      why: 'a refusal counts as a bug of the service',
      tests: [work],
    },
    {
      from: 'if (isFinished(run.state)) return endOf(run)',
      to: '',
      why: 'a second job applies a finished run',
      tests: [work],
    },
    {
      from: '    if (run.isStale) {',
      to: '    if (run.isStale && run.applied) {',
      why: 'a worker applies a run that was queued for more than an hour',
      tests: [retention],
    },
    {
      from: 'run.format > runFormat',
      to: 'run.format > runFormat + 1',
      why: 'a worker applies a run of a newer version',
      tests: ['test/upgrade/mixed-versions.test.ts', twins],
    },
    {
      from: 'tx.finish(run, state, result)',
      to: '',
      why: 'a run has an effect and no result',
      tests: [work],
    },
    {
      from: 'applied: applied === true,',
      to: 'applied: applied !== false,',
      why: 'a cancelled run is reported as applied',
      tests: [work],
    },
    {
      from: "event: 'fail', reason: 'server_error', logs, cause } as const",
      to: "event: 'finish', reason: 'server_error', logs, cause } as const",
      why: 'a bug looks like a refusal',
      tests: [work],
    },
    {
      from: 'error instanceof Problem ? error.message :',
      to: 'error instanceof Error ? error.message :',
      why: 'the message of a bug is shown to the client',
      tests: [work],
    },
    {
      from: "const { state } = live(live(run, 'lock'), result.event)",
      to: 'const { state } = live(run, result.event)',
      why: 'an applied run stays queued',
      tests: [work],
    },
    {
      from: 'run === null || !isFinished(run.state) ? undefined',
      to: 'run === null ? undefined',
      why: 'a run whose commit was lost is reported with the end that it has not',
      tests: [simulation],
    },
  ],
  'src/runs/reconciler-ledger.ts': [
    {
      from: "WHERE state = 'queued' AND enqueued_at <",
      to: 'WHERE enqueued_at <',
      why: 'finished runs are asked about',
      tests: [reconcile],
    },
    {
      from: 'ORDER BY enqueued_at LIMIT $2 FOR UPDATE SKIP LOCKED',
      to: 'ORDER BY enqueued_at LIMIT $2 FOR UPDATE',
      why: 'the reconciler waits for a worker',
      tests: [reconcile],
    },
    {
      from: 'ORDER BY enqueued_at LIMIT $2 FOR UPDATE SKIP LOCKED',
      to: 'ORDER BY enqueued_at DESC LIMIT $2 FOR UPDATE SKIP LOCKED',
      why: 'the youngest runs are enqueued first',
      tests: [reconcile],
    },
    {
      from: 'if (!(await isElected(tx))) return []',
      to: 'await isElected(tx)',
      why: 'all workers reconcile at once',
      tests: ['test/runs/reconcile-round.test.ts'],
    },
    {
      from: "WHERE r.state = 'queued' AND r.attempts = decided.attempts FOR UPDATE",
      to: "WHERE r.state = 'queued' FOR UPDATE",
      why: 'two reconcilers count one attempt',
      tests: [twins, reconcile],
    },
    {
      from: "WHERE r.state = 'queued' AND r.attempts = decided.attempts FOR UPDATE",
      to: 'WHERE r.attempts = decided.attempts FOR UPDATE',
      why: 'a finished run is enqueued again',
      tests: [reconcile],
    },
    {
      from: 'SET attempts = still.next, enqueued_at = now()',
      to: 'SET attempts = still.next',
      why: 'a run is enqueued again with each round',
      tests: [reconcile],
    },
    {
      from: "AND state = 'queued' FOR UPDATE SKIP LOCKED",
      to: 'FOR UPDATE SKIP LOCKED',
      why: 'a run that finished meanwhile fails',
      tests: [reconcile],
    },
    {
      from: "reason = 'unavailable', finished_at = now()",
      to: "reason = 'server_error', finished_at = now()",
      why: 'a run that no worker finished looks like a bug',
      tests: [reconcile],
    },
  ],
  'src/runs/reconcile.ts': [
    {
      from: "answer.value ? 'wait' : 'enqueue'",
      to: "answer.value ? 'enqueue' : 'wait'",
      why: 'runs without a job are not enqueued',
      tests: [reconcile],
    },
    {
      from: "'unqueue')),",
      to: "'wait')),",
      why: 'a job that could not be added counts as an attempt',
      tests: [reconcile],
    },
    {
      from: 'if (failure !== undefined) throw failure.reason',
      to: '',
      why: 'a queue that is away is not reported',
      tests: ['test/runs/reconcile-round.test.ts'],
    },
    {
      from: 'saved.filter(({ attempts, next }) => next.attempts > attempts)',
      to: 'saved.filter(({ attempts, next }) => next.attempts >= attempts)',
      why: 'a run whose job still waits is enqueued a second time',
      tests: [reconcile],
    },
    {
      from: 'runs.filter(({ id }) => written.has(id))',
      to: "runs.filter(({ id }) => id !== '' || written)",
      why: 'a run that a worker took meanwhile is enqueued again',
      tests: [reconcile],
    },
    {
      from: 'await cancelStale(db, worker)',
      to: '',
      why: 'the reconciler enqueues runs that are more than an hour old',
      tests: [retention],
    },
    {
      from: 'await eraseExpired(db)',
      to: '',
      why: 'expired secrets stay',
      tests: [erase],
    },
  ],
  'src/runs/documents.ts': [
    {
      from: 'where: { document, blueprint: { not: null } },',
      to: 'where: { blueprint: { not: null } },',
      why: 'a former run shows the document of another',
      tests: [retention, runApply],
    },
    {
      from: 'if (!isFinished(run.state)) throw',
      to: 'if (isFinished(run.state)) throw',
      why: 'a run that has not ended is applied again',
      tests: [runApply],
    },
    {
      from: '{ holder: latest?.id ?? id, blueprint:',
      to: '{ holder: id, blueprint:',
      why: 'a document that a later run keeps cannot be opened',
      tests: [retention],
    },
  ],
  'src/runs/plans.ts': [
    {
      from: ".digest('plan', document, digests.join(),",
      to: ".digest('plan', document, String(digests.length),",
      why: 'plans of other states have the same tag',
      tests: [plans],
    },
    {
      from: ".digest('plan', document, digests.join(),",
      to: ".digest('plan', digests.join(),",
      why: 'plans of other documents have the same tag',
      tests: [plans],
    },
  ],
} satisfies MutantsOf
