import type { MutantsOf } from '../mutant.ts'

const causes = 'test/api/causes.test.ts'
const outside = 'test/api/changed-outside.test.ts'
const applications = 'test/dashboard/applications.test.ts'
const history = 'test/api/history.test.ts'

/** What an object's history has, and who sees it. */
export default {
  'src/apply/history.ts': [
    {
      from: 'const was = row !== undefined && finding.label !== name ? finding.label : null',
      to: 'const was = null',
      why: 'the history of a renamed object begins with its rename',
      tests: [history],
    },
    {
      from: 'return model.isLabelled && row === undefined ? label : null',
      to: 'return null',
      why: 'the history of a new object has no owner: who is bound to owners does not see it',
      tests: [history],
    },
    {
      from: 'AND n.was = ${name}`',
      to: 'AND n.name = ${name}`',
      why: 'a renamed object is not found under the name that it had',
      tests: [history],
    },
  ],
  'src/apply/audit.ts': [
    {
      from: 'if (entry.changes.every(({ object }) => object === undefined)) tx.send',
      to: 'if (true) tx.send',
      why: 'a write of one object is not in its history',
      tests: [history],
    },
    {
      from: 'isRun && change !== null ? { change } : { fields }',
      to: 'isRun && change !== null ? { change } : {}',
      why: 'the history of a write of one object has no fields',
      tests: [history],
    },
  ],
  'src/apply/outside.ts': [
    {
      from: 'THEN o.digest <> present.digest END',
      to: 'THEN o.digest IS NULL END',
      why: 'changes past the service are not noticed',
      tests: [outside],
    },
    {
      from: 'WHEN left(o.digest, 8) = left(present.digest, 8) THEN',
      to: 'WHEN true THEN',
      why: 'after a change of SECRET_KEY, every object counts as changed past the service',
      tests: [outside],
    },
    {
      from: "WHERE o.digest IS NOT NULL AND o.action <> 'delete'",
      to: 'WHERE o.digest IS NULL',
      why: 'a row that was deleted past the service is not noticed',
      tests: [outside],
    },
    {
      from: 'AND n.key <> o.key AND',
      to: 'AND n.key = o.key AND',
      why: 'what was deleted past the service and put back counts for ever',
      tests: [applications],
    },
  ],
  'src/runs/repairs.ts': [
    {
      from: 'WHERE l.slug = f.slug AND l.created_at > f.created_at AND l.applied',
      to: 'WHERE l.slug = f.slug AND l.created_at > f.created_at',
      why: 'a later failure repairs a failure',
      tests: [causes],
    },
  ],
  'src/runs/finish.ts': [
    {
      from: 'if (audited.length === 0) tx.send({',
      to: 'if (true) tx.send({',
      why: 'what a run changed is not in the history of its objects',
      tests: [history],
    },
    {
      from: 'cause === null ? end(more) :',
      to: 'cause !== undefined ? end(more) :',
      why: 'the attempt that ended a run as failed is not recorded',
      tests: [causes],
    },
  ],
  'src/views/history.ts': [
    {
      from: 'WHERE (seen.owners IS NULL OR o.owner = ANY (seen.owners))',
      to: 'WHERE true',
      why: 'a history is shown to callers who are bound to other owners',
      tests: [history],
    },
    {
      from: 'user: mayNameUser(actor, actorPk) ?',
      to: 'user: true ?',
      why: 'a history names users to callers who may not view users',
      tests: [history],
    },
    {
      from: 'const seesRun = runId !== null && mayReadRun(',
      to: 'const seesRun = runId !== null || mayReadRun(',
      why: 'a history names runs of others to callers who may not see them',
      tests: [history],
    },
    {
      from: 'OR (o.audit_pk = $5::bigint AND o.position > $6::integer))',
      to: ')',
      why: 'a part of a history leaves out what one document did besides',
      tests: [history],
    },
  ],
  'src/views/outside.ts': [
    {
      from: '(v.owners IS NULL OR o.owner = ANY (v.owners))',
      to: 'true',
      why: 'a page names what was deleted past the service to callers who are bound to other owners',
      tests: [applications],
    },
  ],
  'src/runs/history-fill.ts': [
    {
      from: 'AND NOT EXISTS (SELECT FROM run_objects o WHERE o.audit_pk = p.pk)',
      to: '',
      why: 'audit rows that are in the history are carried over again',
      tests: [history],
      survives: 'the key of the table refuses them: the condition saves the work',
    },
    {
      from: "AND a.at < now() - interval '1 minute'",
      to: '',
      why: 'an audit row that is committed after a later one is never carried over',
      tests: [history],
      survives: 'no test commits two audit rows in the other order while they are carried over',
    },
  ],
  'src/views/run.ts': [
    {
      from: "cause: allows(actor, 'view_run') ? row.cause : null",
      to: 'cause: row.cause',
      why: 'the cause of a failure is shown to those who may not see all runs',
      tests: [causes],
    },
  ],
  'src/views/one-run.ts': [
    {
      from: "if (!allows(actor, 'view_run')) return []",
      to: '',
      why: 'the causes of failed attempts are shown to those who may not see all runs',
      tests: [causes],
    },
  ],
  'src/runs/worker-ledger.ts': [
    {
      from: "if (result.event !== 'fail') return result",
      to: 'return result',
      why: 'a failed set is failing still after the same set was applied',
      tests: [causes],
    },
  ],
  'src/runs/cause.ts': [
    {
      from: 'return `${text.slice(0, longest - suffix.length)}${suffix}`',
      to: 'return `${text}${suffix}`.slice(0, longest)',
      why: 'a long cause has no SQLSTATE',
      tests: [causes],
    },
  ],
  'src/runs/reconciler-ledger.ts': [
    {
      from: 'FROM still WHERE next > attempts',
      to: 'FROM still WHERE false',
      why: 'an attempt whose worker ended is not recorded',
      tests: ['test/runs/reconcile.test.ts'],
    },
    {
      from: 'SELECT id, attempts, $2::text FROM still ON CONFLICT',
      to: 'SELECT id, attempts, $2::text FROM still WHERE false ON CONFLICT',
      why: 'the last attempt of a run that no worker finished is not recorded',
      tests: ['test/runs/reconcile.test.ts'],
    },
  ],
} satisfies MutantsOf
