import access from './list/access.ts'
import actor from './list/actor.ts'
import document from './list/document.ts'
import follow from './list/follow.ts'
import history from './list/history.ts'
import judge from './list/judge.ts'
import ledger from './list/ledger.ts'
import metrics from './list/metrics.ts'
import models from './list/models.ts'
import owners from './list/owners.ts'
import pages from './list/pages.ts'
import plan from './list/plan.ts'
import policies from './list/policies.ts'
import policy from './list/policy.ts'
import questions from './list/questions.ts'
import resolver from './list/resolver.ts'
import retention from './list/retention.ts'
import rows from './list/rows.ts'
import submit from './list/submit.ts'
import waits from './list/waits.ts'
import work from './list/work.ts'
import workers from './list/workers.ts'
import type { MutantsOf, Placed } from './mutant.ts'

const rooms: Readonly<Record<string, readonly MutantsOf[]>> = {
  rights: [access, actor, policies, policy, models, owners],
  judge: [judge, follow, plan, document, rows, resolver],
  ledger: [ledger, history, work, workers, metrics, submit, retention],
  pages: [pages, questions, waits],
}

export const roomNames: readonly string[] = Object.keys(rooms)

export const mutants: readonly Placed[] = Object.entries(rooms).flatMap(([room, lists]) =>
  lists
    .flatMap((files) => Object.entries(files))
    .flatMap(([file, each]) => each.map((mutant) => ({ ...mutant, room, file }))),
)
