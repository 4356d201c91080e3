import type { MutantsOf } from '../mutant.ts'

const effects = 'test/api/side-effects.test.ts'
const removal = 'test/api/application-delete.test.ts'
const prune = 'test/api/prune.test.ts'
const check = 'test/apply/check.test.ts'
const conflicts = 'test/apply/conflicts.test.ts'
const states = 'test/apply/states.test.ts'
const storage = 'test/plan/storage.test.ts'
const references = 'test/plan/references.test.ts'
const tokens = 'test/rights/escalation-tokens.test.ts'
const renames = 'test/api/renames.test.ts'

/** What a document would do to each row. */
export default {
  'src/plan/claims.ts': [
    {
      from: '`t."owner" = ANY($1::text[]) AND NOT ${isAny(',
      to: '`t."owner" <> ALL($1::text[]) AND NOT ${isAny(',
      why: 'a prune deletes what other owners manage',
      tests: [prune],
    },
    {
      from: 'had.filter((each) => !has.includes(each))',
      to: 'had.filter((each) => has.includes(each))',
      why: 'a provider that an application keeps counts as released',
      tests: [effects],
    },
    {
      from: '!kept.has(each) && !deleted.has(each)',
      to: '!deleted.has(each)',
      why: 'a provider that another application has is reported as free, and deleted',
      tests: [effects, removal],
    },
    {
      from: "from.some(({ field }) => field.storage.in !== 'link')",
      to: "from.some(({ field }) => field.storage.in === 'link')",
      why: 'a backchannel provider that an application gives up is deleted instead of the provider',
      tests: [effects],
    },
    {
      from: 'IS NULL`',
      to: 'IS NOT NULL`',
      why: 'an application that lost its provider is not reported',
      tests: [effects],
    },
  ],
  'src/plan/inspect.ts': [
    {
      from: "if (isAmbiguous) errors.add(path, 'ambiguous'",
      to: "if (!isAmbiguous && row === null) errors.add(path, 'ambiguous'",
      why: 'an entry whose identifiers find two rows changes one of them',
      tests: [states],
    },
    {
      from: '  addErrors(asked, row, resolved, errors)',
      to: 'void addErrors',
      why: 'a name that stands for no row is left out',
      tests: ['test/plan/names.test.ts'],
    },
    {
      from: '  checkReferences(engine.registry, asked, seen, resolved.values, resolver, errors)',
      to: '',
      why: 'references to rows that do not fit are written',
      tests: [references],
    },
    {
      from: 'if (entry?.isGone) report(what, null, at)',
      to: 'if (entry?.isGone && false) report(what, null, at)',
      why: 'a check takes the key of a row that the document deletes',
      tests: ['test/api/chosen-keys.test.ts'],
    },
    {
      from: 'if (!isAmbiguous) await checkUnique(engine.registry, step, seen, row, sent, resolver, errors)',
      to: '',
      why: 'a value that another row has is an error of the database',
      tests: [storage],
    },
    {
      from: '  checkLimit(step, seen, errors)',
      to: '',
      why: 'a user may have any number of tokens',
      tests: [tokens],
    },
    {
      from: 'const own = isForeign ? undefined : row',
      to: 'const own = row',
      why: 'an entry is compared with the row of another kind',
      tests: [check, states, 'test/api/transactional.test.ts'],
    },
    {
      from: 'had.has(claimed.pk) || !sentKeys.has(claimed.pk)) continue',
      to: '!sentKeys.has(claimed.pk)) continue',
      why: 'an application that keeps its provider needs the permission to change it',
      tests: [conflicts],
    },
    {
      from: 'some(([column, value]) => row[column] !== value)',
      to: 'every(([column, value]) => row[column] === null && value)',
      why: 'an entry changes the provider of another kind',
      tests: [states],
    },
    {
      from: 'if (holder.pk === row?.pk) continue',
      to: '',
      why: 'a row cannot keep its own name',
      tests: [storage],
    },
    {
      from: 'const isNamed = label === written || (await resolver.views(of, holder))',
      to: 'const isNamed = true',
      why: 'an error shows the name of the token of another user',
      tests: ['test/api/tokens-write.test.ts', 'test/rights/names-not-viewed.test.ts'],
    },
    {
      from: 'seen.count < limit.rows) return',
      to: 'seen.count <= limit.rows) return',
      why: 'a user may have one token more than the limit',
      tests: [tokens],
    },
  ],
  'src/plan/effect.ts': [
    {
      from: "case 'unchanged':",
      to: "case 'unchanged': return `view_${step.model.resource}`",
      why: 'to send a row as it is needs only the permission to see it',
      tests: [check],
    },
    {
      from: "step.state === 'absent' ? 'delete' : step.state === 'present' ? 'change' : 'add'",
      to: "step.state === 'absent' ? 'view' : step.state === 'present' ? 'change' : 'view'",
      why: 'the log says whether a row is there without the permission to write it',
      tests: ['test/apply/check.test.ts'],
    },
    {
      from: 'if (isImpersonated && !allows(impersonator, needed)) return needed',
      to: '',
      why: 'while impersonating, a caller writes the tokens of the user without the permission',
      tests: [tokens],
    },
    {
      from: 'return row[columnOf(model, model.owner)] === pk',
      to: 'return values[model.owner] === pk || row[columnOf(model, model.owner)] === pk',
      why: 'a caller owns the token that the caller claims',
      tests: ['test/rights/escalation-tokens.test.ts'],
    },
    {
      from: 'if (model.owner === undefined || pk === null || isOfOthers(actor)) return false',
      to: 'if (pk === null || isOfOthers(actor)) return false; if (model.owner === undefined) return true',
      why: 'all rows of models without an owner are the own of all',
      tests: [check],
    },
  ],
  'src/sides.ts': [
    {
      from: 'one.length === other.length && ',
      to: '',
      why: 'an added link counts as unchanged',
      tests: [storage],
    },
  ],
  'src/plan/reset.ts': [
    {
      from: "reference?.target !== 'user' &&",
      to: '',
      why: 'a reset takes the members of groups away',
      tests: ['test/api/reset.test.ts'],
    },
    {
      from: 'named === undefined || !isConfiguration(model)',
      to: 'named === undefined',
      why: 'a reset activates users',
      tests: ['test/api/reset.test.ts'],
    },
  ],
  'src/plan/diff.ts': [
    {
      from: "return row === undefined ? noChange : { ...noChange, action: 'delete' }",
      to: 'return noChange',
      why: 'what is absent stays',
      tests: [states],
    },
    {
      from: "if (state === 'created') return { ...noChange, before: stored }",
      to: '',
      why: 'an entry that only creates changes what is there',
      tests: [states],
    },
    {
      from: "  if (state === 'must_created') {",
      to: "  if (state === 'must_created' && !row) {",
      why: 'an entry that must create changes what is there',
      tests: [states],
    },
    {
      from: 'if (row === undefined && step.mustExist) return noChange',
      to: '',
      why: 'a change of a row that is not there shows the errors of a new one',
      tests: ['test/apply/write.test.ts', 'test/api/groups-write.test.ts', 'test/api/tokens-write.test.ts'],
    },
    {
      from: 'sent.has(field.name) && !isSame(',
      to: '!isSame(',
      why: 'fields that were not sent are reset',
      tests: [states],
    },
    {
      from: 'if (changed.length > 0 || guesses) checkRules(step, values, errors)',
      to: '',
      why: 'an update breaks the rules of its model',
      tests: [check],
    },
    {
      from: "else if (required) errors.add([...path, name], 'required', 'This field is required.')",
      to: '',
      why: 'a row is created without a required field',
      tests: [check],
    },
    {
      from: 'values[field] !== undefined) errors.add',
      to: 'values[field] !== null) errors.add',
      why: 'the error of a rule stands beside the error of its field',
      tests: [check],
    },
  ],
  'src/plan/rename.ts': [
    {
      from: 'if (!found.has(was)) return step',
      to: 'if (found.has(was)) return step',
      why: 'a rename creates another row',
      tests: [renames],
    },
    {
      from: "if (found.has(String(name))) return { ...step, rename: 'both' }",
      to: '',
      why: 'a rename to a name that is taken is tried',
      tests: [renames],
    },
  ],
  'src/plan/referrers.ts': [
    {
      from: 'only?.column === name && !only.atFirst && !only.values.some((each) => each === values[name])',
      to: 'false',
      why: 'a flow that is in use gets another designation',
      tests: [references],
    },
    {
      from: "return reference.holds === true || storage.in === 'settings'",
      to: 'return false',
      why: 'what others refer to is deleted until the database refuses it',
      tests: ['test/api/in-use.test.ts'],
    },
  ],
} satisfies MutantsOf
