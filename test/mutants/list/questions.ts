import type { MutantsOf } from '../mutant.ts'

const tests = ['test/browser/questions.test.ts']

/** What would leave an operator on call without an answer, or with a wrong one. */
export default {
  'src/views/history.ts': [
    {
      from: 'WHERE (seen.owners IS NULL OR o.owner = ANY (seen.owners))',
      to: 'WHERE (seen.owners IS NULL OR o.owner = ANY (seen.owners)) AND o.run_id IN (SELECT id FROM runs WHERE slug = $2)',
      why: 'a history is of the runs with the slug alone: it lacks sets, deletions and what was before a rename',
      tests,
    },
  ],
  'src/views/run.ts': [
    {
      from: "cause: allows(actor, 'view_run') ? row.cause : null",
      to: 'cause: null',
      why: 'the cause of a failure is hidden from all',
      tests,
    },
  ],
  'src/lists/run-groups.ts': [
    {
      from: 'repaired.has(id)',
      to: "repaired.has('')",
      why: 'a repaired failure is shown as failing still',
      tests,
    },
  ],
  'src/queue/pause.ts': [
    {
      from: 'by ${by.name} since',
      to: 'since',
      why: 'a pause has no name',
      tests,
    },
  ],
  'src/db/presence.ts': [
    {
      from: 'seenS > silentAfterS',
      to: 'seenS > forgottenAfterS',
      why: 'a silent worker is shown as healthy',
      tests,
    },
  ],
} satisfies MutantsOf
