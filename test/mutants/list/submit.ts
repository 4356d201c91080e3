import type { MutantsOf } from '../mutant.ts'

const backlog = 'test/runs/backlog.test.ts'
const deliveries = 'test/api/deliveries.test.ts'
const subscribe = 'test/runs/subscribe.test.ts'

/** What a submitter is answered. */
export default {
  'src/runs/submit.ts': [
    {
      from: 'admission.leave(isKnown)',
      to: 'void [admission, isKnown]',
      why: 'submissions that have ended count for ever',
      tests: ['test/api/deliveries.test.ts'],
    },
    {
      from: 'if (key === null || pk === null) return undefined',
      to: 'if (key !== null || pk === null) return undefined',
      why: 'the Idempotency-Key is ignored',
      tests: [deliveries],
    },
    {
      from: 'requestDigest(keyring, text, JSON.stringify(others))',
      to: 'requestDigest(keyring, text)',
      why: 'the same document under other conditions is the same request',
      tests: [deliveries],
    },
    {
      from: '  await check()',
      to: '',
      why: 'a submission is not checked before it is recorded',
      tests: [deliveries],
    },
    {
      from: 'isFlushed: isAsync',
      to: 'isFlushed: false',
      why: 'a crash loses a run that was acknowledged',
      tests: [deliveries],
      survives: 'only a crash shows it: npm run faults',
    },
    {
      from: 'const isLarge = count > fewEntries',
      to: 'const isLarge = count < 0',
      why: 'small runs wait behind large ones',
      tests: ['test/queue/lanes.test.ts'],
    },
    {
      from: 'if (isAsync && pk !== null) await refuseTooMany(submitter, pk,',
      to: 'if (isAsync && pk === -1) await refuseTooMany(submitter, pk,',
      why: 'submissions that are not waited for are not limited',
      tests: [deliveries],
    },
    {
      from: 'if (waiting === 0 || waiting + entries <= most) return',
      to: 'if (waiting + entries >= 0) return',
      why: 'what one user has waiting is not limited',
      tests: [deliveries],
    },
    {
      from: 'if (leftMs() < cancelMs) throw cancelled',
      to: 'if (leftMs() < 0) throw cancelled',
      why: 'a submission is recorded too late for its answer',
      tests: ['test/api/transactional.test.ts', 'test/api/paused.test.ts'],
      survives: 'no test makes a check take as long as the wait',
    },
    {
      from: 'if (lane === null) throw cancelled',
      to: 'if (isRecorded === undefined) throw cancelled',
      why: 'a submission that was not recorded is waited for',
      tests: ['test/api/deliveries.test.ts'],
      survives: 'only npm run faults holds a record up in the network',
    },
    {
      from: '    stop.abort()',
      to: '',
      why: 'a run that could not be enqueued is waited for',
      tests: ['test/api/deliveries.test.ts'],
      survives: 'only npm run faults takes the queue away',
    },
    {
      from: "if (failure === undefined) return { id, run: 'accepted' }",
      to: "if (failure !== null) return { id, run: 'accepted' }",
      why: 'a run that could not be enqueued is accepted',
      tests: ['test/api/deliveries.test.ts'],
      survives: 'only npm run faults takes the queue away',
    },
    {
      from: "(run.state !== 'cancelled' || run.cancelledBy !== null)",
      to: 'true',
      why: 'a cancelled run is answered as a result',
      tests: [deliveries, 'test/api/paused.test.ts'],
    },
    {
      from: "(run.state !== 'cancelled' || run.cancelledBy !== null)",
      to: "run.state !== 'cancelled'",
      why: 'the submitter of a run that a user cancelled is asked to send it again',
      tests: ['test/api/run-cancel.test.ts'],
    },
  ],
  'src/runs/subscribe.ts': [
    {
      from: "if (await transaction(db, cancel, { timeouts })) return 'cancelled'",
      to: 'await transaction(db, cancel, { timeouts })',
      why: 'a run that was cancelled is answered as finished',
      tests: [subscribe],
    },
    {
      from: "if (run === undefined) return 'vanished'",
      to: "if (run === undefined) return 'unknown'",
      why: 'a run that a crash lost is answered as unknown',
      tests: ['test/runs/subscribe.test.ts'],
    },
    {
      from: "if (isTransient(error)) return 'locked'",
      to: "if (isTransient(error)) return 'cancelled'",
      why: 'a run that a worker has is answered as cancelled',
      tests: [subscribe],
    },
    {
      from: "report(id, found.get(id) ?? 'vanished')",
      to: '{ const run = found.get(id); if (run !== undefined) report(id, run) }',
      why: 'a run that a crash lost is waited for',
      tests: [subscribe],
    },
    {
      from: "if (run === 'vanished' || isFinished(run.state)) followed.delete(id)",
      to: '',
      why: 'finished runs are read again and again',
      tests: [subscribe],
    },
    {
      from: 'if (known === state) continue',
      to: '',
      why: 'a state is reported more than once',
      tests: [subscribe],
    },
    {
      from: "locked.has(id) ? 'locked' : 'waiting'",
      to: "'locked'",
      why: 'a retry learns that a worker has its run when none has it',
      tests: [deliveries],
    },
  ],
  'src/runs/backlog.ts': [
    {
      from: 'if (inside > limit / 2) limit =',
      to: 'limit =',
      why: 'the limit grows although it is not used',
      tests: [backlog],
    },
    {
      from: 'now - loweredAt < lowerEveryMs || ',
      to: '',
      why: 'one slow moment lowers the limit to the least',
      tests: [backlog],
    },
    {
      from: 'wereSlow.filter(Boolean).length >= wereSlow.length * judged.slowShare',
      to: 'wereSlow.includes(true)',
      why: 'one slow worker of several lowers the limit to the least',
      tests: [backlog],
    },
    {
      from: ' || inside < fairShare * littleOfIt',
      to: '',
      why: 'an API with few submissions pays for those of another',
      tests: [backlog],
    },
    {
      from: 'if (count < limit) return',
      to: 'if (count <= limit) return',
      why: 'one submission more than the limit is inside',
      tests: [backlog],
    },
    {
      from: 'refuseIfFull(inside + arriving,',
      to: 'refuseIfFull(inside,',
      why: 'submissions that have arrived do not count',
      tests: [backlog],
    },
    {
      from: 'if (isCounted) arriving -= 1',
      to: 'arriving -= 1',
      why: 'a submission leaves twice',
      tests: [backlog],
    },
    {
      from: 'olderS === null : silentS <= silentMostS) return null',
      to: 'olderS === null : silentS >= 0) return null',
      why: 'submissions are recorded although no worker takes jobs',
      tests: [backlog],
    },
    {
      from: 'FILTER (WHERE format >= $1))::float8 AS "silentS"',
      to: 'FILTER (WHERE format > 0))::float8 AS "silentS"',
      why: 'a worker of an older version counts as one that takes new runs',
      tests: ['test/upgrade/mixed-versions.test.ts', backlog],
    },
  ],
} satisfies MutantsOf
