import type { MutantsOf } from '../mutant.ts'

const check = 'test/apply/check.test.ts'
const gains = 'test/rights/gains.test.ts'
const keys = 'test/api/chosen-keys.test.ts'
const conflicts = 'test/apply/conflicts.test.ts'
const states = 'test/apply/states.test.ts'
const history = 'test/api/history.test.ts'
const write = 'test/apply/write.test.ts'
const owners = 'test/api/owners.test.ts'
const prune = 'test/api/prune.test.ts'
const renames = 'test/api/renames.test.ts'
const effects = 'test/api/side-effects.test.ts'
const removal = 'test/api/application-delete.test.ts'
const groups = 'test/rights/escalation-groups.test.ts'
const plans = 'test/api/plans.test.ts'
const again = 'test/api/plans-again.test.ts'
const meanwhile = 'test/rights/rights-taken-meanwhile.test.ts'
const last = 'test/rights/last-superuser.test.ts'

/** What a document may do to each row. */
export default {
  'src/apply/judge.ts': [
    {
      from: 'why === null ? [] : [{ is:',
      to: "why === null || cause !== 'entry' ? [] : [{ is:",
      why: 'what follows from a document is deleted without the permission',
      tests: [effects, prune],
    },
    {
      from: 'why === null ? [] : [{ is:',
      to: "why === null || cause === 'entry' ? [] : [{ is:",
      why: 'an entry is applied although it is denied',
      tests: [check, groups],
    },
    {
      from: "if (cause === 'entry') addKeyError(effect, conditions)",
      to: '',
      why: 'a row has another key than the submission expects',
      tests: [check],
    },
    {
      from: "if (cause === 'entry') said.check(effect)",
      to: '',
      why: 'a row that is found in two ways may have two values for a field',
      tests: ['test/api/one-row-twice.test.ts'],
    },
    {
      from: 'named.length === 0 ? asked : await look(without(asked.step, named))',
      to: 'asked',
      why: 'a reset undoes what another entry of the row says',
      tests: ['test/api/reset.test.ts'],
    },
    {
      from: "conditions.createOnly && cause === 'entry' && !plan.errors.any",
      to: "conditions.createOnly && cause !== 'entry' && !plan.errors.any",
      why: 'If-None-Match: * changes what is there',
      tests: [check],
    },
    {
      from: "conditions.createOnly && cause === 'entry' && !plan.errors.any",
      to: "conditions.createOnly && cause === 'entry'",
      why: 'under If-None-Match: *, the errors of a document are hidden by what is there',
      tests: [check],
    },
    {
      from: "objections: isMeant ? [] : [{ is: 'grants'",
      to: "objections: !isMeant ? [] : [{ is: 'grants'",
      why: 'users who are not named get rights without an acknowledgement',
      tests: [gains],
    },
    {
      from: 'step.mustExist && effect.row === undefined',
      to: 'step.mustExist && effect.row === null',
      why: 'a row that is not there is deleted',
      tests: [write, removal],
    },
    {
      from: '      ...ofEntry(effect),',
      to: '',
      why: 'an entry with errors is applied',
      tests: [check],
    },
    {
      from: '    yield* judgeTaken(effect)',
      to: '',
      why: 'a row that is taken through a reference is not judged',
      tests: [conflicts],
    },
    {
      from: 'taken.row === undefined || judged.has(model, taken.row.pk)',
      to: 'taken.row === undefined || taken.row',
      why: 'no row that is taken is judged',
      tests: [conflicts],
    },
    {
      from: 'taken.row === undefined || judged.has(model, taken.row.pk)',
      to: 'taken.row === undefined',
      why: 'a row that an entry names and another takes is judged twice',
      tests: [conflicts, owners, effects],
    },
    {
      from: 'const needed = `change_${model.resource}` as const',
      to: 'const needed = `view_${model.resource}` as const',
      why: 'a row that is taken needs only the permission to see it',
      tests: [conflicts],
    },
    {
      from: 'mayChange ? [] : [{ is:',
      to: 'mayChange || actor ? [] : [{ is:',
      why: 'a row that is taken needs no permission',
      tests: [conflicts],
    },
    {
      from: '...ofOwner(effect, ownership, conditions)]',
      to: "...(cause === 'taken' ? [] : ofOwner(effect, ownership, conditions))]",
      why: 'the provider of another owner is taken through a reference',
      tests: ['test/apply/conflicts.test.ts'],
    },
    {
      from: '...ofOwner(effect, ownership, conditions)]',
      to: "...(cause === 'entry' ? ofOwner(effect, ownership, conditions) : [])]",
      why: 'what follows from a document deletes the rows of another owner',
      tests: [effects, removal],
    },
    {
      from: '...ofOwner(effect, ownership, conditions)]',
      to: ']',
      why: 'what another owner manages is changed',
      tests: [owners],
    },
    {
      from: 'if (!isCheck) snapshot.wrote(effect, key)',
      to: '',
      why: 'an entry does not see what an earlier one wrote',
      tests: ['test/apply/sets.test.ts'],
    },
    {
      from: 'if (isCheck) resolver.skipped(each)',
      to: '',
      why: 'a check refuses what refers to an entry whose condition is not known yet',
      tests: ['test/api/blueprint-tags.test.ts', 'test/document/evaluate.test.ts'],
    },
    {
      from: "const chosen = action === 'create' ? effect.pk : undefined",
      to: 'const chosen = undefined',
      why: 'a check does not know the key that the document chooses',
      tests: [keys],
    },
    {
      from: 'await lock(found)',
      to: '',
      why: 'what follows from a document is not locked before it is deleted',
      tests: ['test/apply/followers.test.ts'],
      survives:
        'the apply has locked what it knows of: no test changes a row that follows between its locks and the first look',
    },
    {
      from: 'index === 0 ? pruneObjections(pruned, conditions, actor) : []',
      to: '[]',
      why: 'a document prunes without an acknowledgement',
      tests: [prune],
    },
    {
      from: 'return (await find()).filter(({ model, pk }) => isLocked.has(model, pk))',
      to: 'return found',
      why: 'what another owner or application took meanwhile is deleted',
      tests: ['test/apply/followers.test.ts'],
      survives:
        'the apply has locked what it knows of: no test changes a row that follows between its locks and the first look',
    },
    {
      from: "if (effect.step.rename === 'both') return [{ is: 'both', effect }]",
      to: '',
      why: 'a rename to a name that is taken changes the other row',
      tests: [renames],
    },
    {
      from: 'ownership?.is === "another\'s" ?',
      to: "ownership?.is === 'taken over' ?",
      why: 'a takeover is refused, and what another owner manages is changed',
      tests: [owners],
    },
    {
      from: 'expected === undefined || expected === row?.pk) return',
      to: 'expected === undefined || row === undefined || expected === row.pk) return',
      why: 'a submission that expects a row creates another one',
      tests: [check],
    },
  ],
  'src/apply/apply.ts': [
    {
      from: "if (finding.cause === 'entry') entryDone()",
      to: 'entryDone()',
      why: 'progress counts rows that an entry takes',
      tests: ['test/apply/taken-rows.test.ts'],
    },
    {
      from: 'audited.push(...changesOfLosses(left, names))',
      to: '',
      why: 'an application whose provider is deleted counts as changed past the service',
      tests: ['test/api/changed-outside.test.ts'],
    },
    {
      from: "if (plan.errors.any) objections.push({ is: 'invalid', errors: plan.errors })",
      to: '',
      why: 'a document with errors is applied without the values that have them',
      tests: [write, states],
    },
    {
      from: 'await lock(tx, [...plan.steps, ...following.map((row) => removal(row))])',
      to: '',
      why: 'documents that write the same names do not wait for each other',
      tests: ['test/plan/storage.test.ts', write, last],
    },
    {
      from: 'currentActor(tx, submitter).then(orGone)',
      to: 'Promise.resolve(submitter as Actor)',
      why: 'a run is applied by the rights of its submission',
      tests: [meanwhile],
    },
    {
      from: 'hadSuperuser ??= await hasSuperuser(tx, actor, plan.steps)',
      to: 'hadSuperuser ??= await Promise.resolve(hasSuperuser !== undefined)',
      why: 'when all superusers have lost their tokens, a change of another is to blame',
      tests: [last],
    },
    {
      from: '    review?.compare(finding)',
      to: '',
      why: 'an apply does something else than the plan that was reviewed',
      tests: [plans],
    },
    {
      from: 'refuseIfAny(objections.length > 0 ?',
      to: 'refuseIfAny(objections.length < 0 ?',
      why: 'nothing is refused',
      tests: [check, groups],
    },
    {
      from: 'if (objections.length > 0) break',
      to: 'if (objections.length > 1) break',
      why: 'an entry is written although it is refused',
      tests: [check, groups, states],
    },
    {
      from: 'recordSettings(tx, actor, finding, keyOf(finding))',
      to: '',
      why: 'settings reach users who hold more than their writer',
      tests: ['test/api/me.test.ts'],
    },
    {
      from: 'if (written !== undefined)',
      to: "if (written !== undefined && finding.cause === 'entry')",
      why: 'deletions that follow from a document are not audited',
      tests: [effects],
    },
    {
      from: 'if (written !== undefined)',
      to: 'if (written === undefined && written !== undefined)',
      why: 'no change is audited',
      tests: [write, 'test/runs/work.test.ts'],
    },
    {
      from: 'objectOf(named, changes.length - 1, owner)',
      to: 'objectOf(named, changes.length, owner)',
      why: 'the history of an object shows the change of another',
      tests: [history],
    },
    {
      from: '  writes.flush()',
      to: '',
      why: 'the last writes of a document are forgotten',
      tests: [states],
    },
    {
      from: 'if (actor === null) throw new Refusal',
      to: 'if (actor === undefined) throw new Refusal',
      why: 'the run of a user who is no longer active is a bug of the service',
      tests: ['test/runs/work.test.ts', meanwhile],
    },
  ],
  'src/apply/changes.ts': [
    {
      from: 'if (row === undefined || given !== undefined) return null',
      to: 'if (row === undefined) return null',
      why: 'a plan of a document that names a new row again can never be applied',
      tests: [again],
    },
    {
      from: 'String(tags.get(key) ?? key)).sort()',
      to: 'String(key)).sort()',
      why: 'a plan of a document that puts a new row into a list of an old one can never be applied',
      tests: [again],
    },
  ],
  'src/apply/review.ts': [
    {
      from: 'this.#reviewed !== undefined && digest !== expected',
      to: 'this.#reviewed === undefined && digest !== expected',
      why: 'a row that changed after the plan is applied all the same',
      tests: [plans],
    },
    {
      from: 'this.#changed.length === 0 && this.#fewer > 0 ?',
      to: 'this.#changed.length === 0 && this.#fewer < 0 ?',
      why: 'fewer rows are deleted than the plan that was reviewed has',
      tests: [prune],
    },
    {
      from: "this.#changesNothing &&= finding.change.action === 'unchanged'",
      to: "this.#changesNothing &&= finding.change.action !== 'delete'",
      why: 'a plan that differs is applied as if it stood already',
      tests: [plans],
    },
  ],
} satisfies MutantsOf
