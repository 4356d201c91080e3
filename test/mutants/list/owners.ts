import type { MutantsOf } from '../mutant.ts'

const causes = 'test/api/causes.test.ts'
const records = 'test/dashboard/records.test.ts'
const bound = 'test/rights/bound-owners.test.ts'
const entries = 'test/api/owners-of-entries.test.ts'
const names = 'test/rights/names-of-others.test.ts'
const lookUps = 'test/rights/look-ups.test.ts'
const blind = 'test/rights/blind-plans.test.ts'
const gains = 'test/rights/gains-of-owners.test.ts'
const tokens = 'test/rights/owners-of-tokens.test.ts'

/** Rows of owners, what a document may look up, and what is not told to those who may not view it. */
export default {
  'src/plan/sight.ts': [
    {
      from: 'if (isFreeFind(model, identifiers)) return true',
      to: 'return true',
      why: 'a look-up of any field of any model needs no permission',
      tests: [lookUps],
    },
    {
      from: 'if (areFree(models)) return true',
      to: 'if (models.length > 0) return true',
      why: 'a reference by name needs no permission',
      tests: [lookUps],
    },
    {
      from: 'fields.length > 0 && fields.every(',
      to: 'fields.length > 0 || fields.every(',
      why: 'any field of what is only configuration can be looked up',
      tests: [lookUps],
    },
    {
      from: "field === 'username' ? value === username :",
      to: "field === 'username' ? value !== undefined :",
      why: 'a look-up of any user counts as one of the caller itself',
      tests: [lookUps],
    },
    {
      from: 'return JSON.stringify([name, values.sort()])',
      to: 'return JSON.stringify([name, values.length > 0])',
      why: 'a document that writes one row looks up all of its model',
      tests: [lookUps],
    },
    {
      from: "return viewsRow(this.#read, model, values.get('owner'))",
      to: 'return true',
      why: 'a look-up finds rows of another kind or owner than the caller may view',
      tests: [lookUps, bound],
    },
    {
      from: "? allowsFor(actor, `view_${model.resource}`, typeof owner === 'string' ? owner : null)",
      to: '? views(actor, model)',
      why: 'a look-up finds rows of other owners',
      tests: [bound],
    },
    {
      from: 'viewsRow(actor, model, row.owner) ||',
      to: 'true ||',
      why: 'a plan compares rows that its submitter may not view',
      tests: [blind],
    },
  ],
  'src/plan/diff.ts': [
    {
      from: "comparison === 'blind' ? unseenFields(step, sent) : []",
      to: '[]',
      why: 'a plan tells whether a value was guessed',
      tests: [blind],
    },
    {
      from: 'if (changed.length > 0 || guesses) checkRules',
      to: 'if (changed.length > 0) checkRules',
      why: 'a refusal tells that a guess of a secret was wrong',
      tests: [blind],
    },
  ],
  'src/plan/storage.ts': [
    {
      from: 'if (before[name] === values[name]) continue',
      to: '',
      why: 'the same secret again, by a caller who may not view it, ends the overlap with the one before',
      tests: [blind],
    },
  ],
  'src/apply/changes.ts': [
    {
      from: 'if (isHidden && before !== undefined) return { from: notShown, to }',
      to: '',
      why: 'a plan shows old values to a submitter who may not view them',
      tests: [blind],
    },
  ],
  'src/plan/inspect.ts': [
    {
      from: '`${JSON.stringify(value)} is the',
      to: '`${JSON.stringify(row[labelColumn(model)])} is the',
      why: 'a key tells the name of a row of another kind',
      tests: [names],
    },
  ],
  'src/plan/resolve.ts': [],
  'src/plan/effect.ts': [
    {
      from: 'isLabelled === true ? allowsFor(',
      to: 'isLabelled !== true ? allowsFor(',
      why: 'who may know the rows of one owner knows those of all',
      tests: [names],
    },
  ],
  'src/apply/judge.ts': [
    {
      from: '      ...unseen,',
      to: '',
      why: 'a look-up that is denied is an error of a field, and other errors beside it are reported',
      tests: [lookUps],
    },
    {
      from: 'if (claims.length > 0) {',
      to: 'if (claims.length > 0 && !isCheck) {',
      why: 'a caller who names the owner of others learns of their rows in a check',
      tests: [bound],
    },
    {
      from: 'const mayChange = allowsAll(actor, needed, owners)',
      to: 'const mayChange = allowsAll(actor, needed, undefined)',
      why: 'a provider of another owner is taken through a reference',
      tests: [bound],
    },
    {
      from: "const follows = cause !== 'entry'",
      to: 'const follows = false',
      why: 'a denial names a row of another owner that follows from a document',
      tests: [names],
    },
  ],
  'src/apply/ownership.ts': [
    {
      from: 'const made = mayNameUser(actor, createdBy) ?',
      to: 'const made = true ?',
      why: 'a conflict of owners names the maker to callers who may not view users',
      tests: [bound],
    },
    {
      from: 'needed.some((permission) => allowsFor(actor, permission, owner))',
      to: 'needed.some((permission) => ownersFor(actor, permission).length > 0)',
      why: 'a caller that is bound to one owner names any other',
      tests: [bound],
    },
    {
      from: "return action === 'leave' ? [] : [label]",
      to: 'return []',
      why: 'a new row under any label takes a permission for one owner',
      tests: [bound],
    },
    {
      from: "if (typeof step.owner === 'string') named.getOrInsert(step.owner, { step })",
      to: "if (typeof step.owner === 'number') named.getOrInsert(step.owner, { step })",
      why: 'a caller that is bound to one owner names any other in an entry',
      tests: [entries],
    },
  ],
  'src/apply/unclaimed.ts': [
    {
      from: 'orphans.filter(({ row }) => mayKnow(actor, row.model, row.owner))',
      to: 'orphans',
      why: 'the log names a provider of another owner that an application loses',
      tests: [names],
    },
    {
      from: 'left.filter(({ of, owner }) => mayKnow(actor, of, owner))',
      to: 'left',
      why: 'the log names an application of another owner that loses its provider',
      tests: [names],
    },
  ],
  'src/apply/words.ts': [
    {
      from: 'isHidden ? nameSent(step) : `',
      to: '`',
      why: 'a denial names a row that the caller may not view',
      tests: ['test/rights/names-not-viewed.test.ts'],
    },
    {
      from: 'rows.filter(({ model, owner }) => mayKnow(actor, model, owner))',
      to: 'rows',
      why: 'a prune names rows for which its submitter has no permission',
      tests: [names],
    },
  ],
  'src/rights/gains.ts': [
    {
      from: 'permissions: rightsOf(role.permissions, owners) },',
      to: 'permissions: role.permissions },',
      why: 'users gain rights for more owners without being named',
      tests: [bound],
    },
    {
      from: "owners: (sent.has('owners') ? later.owners : earlier.owners) ?? [],",
      to: 'owners: later.owners ?? [],',
      why: 'a check forgets the owners that an earlier entry gives to a role',
      tests: [gains],
    },
  ],
  'src/rights/gains-sql.ts': [
    {
      from: "ARRAY[r, split_part(r, '@', 1), 'superuser']",
      to: "ARRAY[r, 'superuser']",
      why: 'who holds a permission for all owners by another group gains it for one',
      tests: [gains],
    },
  ],
  'src/rights/policies.ts': [
    {
      from: 'const is = rightsOf(texts(permissions.is), texts(owners.is))',
      to: 'const is = rightsOf(texts(permissions.is), texts(owners.was))',
      why: 'a caller looses a role from its owners without holding what it gives then',
      tests: [bound],
    },
  ],
  'src/models/token.ts': [
    {
      from: 'ceilingOf(isLimited ? creator.permissions : null, values.owners,',
      to: 'ceilingOf(isLimited ? creator.permissions : null, [],',
      why: 'a token with owners is not bound to them',
      tests: [bound],
    },
  ],
  'src/views/user.ts': [
    {
      from: "pk === actor.pk || allows(actor, 'view_user')",
      to: 'true',
      why: 'a token shows its user in full to callers who may not view users',
      tests: [tokens],
    },
  ],
  'src/apply/history.ts': [
    {
      from: '(${owners}::text[] IS NULL OR n.owner = ANY (${owners}::text[]))`',
      to: '(${owners}::text[] IS NULL OR true)`',
      why: 'runs tell the names that an object had under another owner',
      tests: [names],
    },
  ],
  'src/runs/options.ts': [
    {
      from: 'if (owners === null) return true',
      to: 'return true',
      why: 'a caller that is bound to owners reads the runs of others',
      tests: [bound],
    },
    {
      from: '[found.owner, ...found.owners].every(',
      to: '[found.owner, ...found.owners].some(',
      why: 'a caller that is bound to one of the owners of a run reads what it did for the others',
      tests: [entries],
    },
    {
      from: 'const more = owners.filter((owner) => owner !== conditions.owner)',
      to: 'const more = owners.filter((owner) => owner === conditions.owner)',
      why: 'a run forgets the owners of its entries',
      tests: [entries],
    },
  ],
  'src/lists/runs.ts': [
    {
      from: "'[null]'::jsonb ELSE",
      to: "'[]'::jsonb ELSE",
      why: 'a list leaves out own runs about objects without an owner',
      tests: [entries],
    },
    {
      from: "runs.options->'owners' IS NULL OR",
      to: 'true OR',
      why: 'a list shows runs of several owners to those who have one of them',
      tests: [entries],
    },
  ],
  'src/views/repair.ts': [
    {
      from: 'rows.filter((row) => mayReadRun(row, actor))',
      to: 'rows',
      why: 'a repaired failure names a run that the caller may not see',
      tests: [causes],
    },
  ],
  'src/views/former-owner.ts': [
    {
      from: 'owners !== null && wasAnothers(each.fields, owners)',
      to: 'false',
      why: 'a run that took an object over shows what it was under another owner',
      tests: [names],
    },
    {
      from: "OR r.options #> '{allow,takeover}' = 'true'",
      to: 'OR false',
      why: 'the log of a deletion names the owner from whom it was taken',
      tests: [names],
    },
  ],
  'src/views/refusal.ts': [
    {
      from: "allows(actor, 'view_run') && ownersShown(actor) === null",
      to: "allows(actor, 'view_run')",
      why: 'a caller that is bound to owners reads what was refused to others',
      tests: [records],
    },
  ],
  'src/lists/list.ts': [
    {
      from: 'ownersShown(actor, owned.unless) ?? undefined',
      to: 'undefined',
      why: 'the list of runs shows those of other owners',
      tests: [bound],
    },
    {
      from: 'value: filter.seen?.(query[name], actor) ?? query[name]',
      to: 'value: query[name]',
      why: 'runs tell the names of objects that their submitter may not view',
      tests: [lookUps],
    },
  ],
  'src/views/history.ts': [
    {
      from: "objectsNamed('ARRAY[$1]', '$2', '$8', '$11')",
      to: "objectsNamed('ARRAY[$1]', '$2', 'NULL', '$11')",
      why: 'a history tells the slug that an application had under another owner',
      tests: [names],
    },
    {
      from: ' AND ($8::text[] IS NULL OR owner = ANY ($8::text[]))',
      to: '',
      why: 'a history tells the slug that an application has under another owner',
      tests: [names],
    },
  ],
  'src/views/provider.ts': [
    {
      from: 'owners === null || (owner !== null',
      to: 'owners === null || (true || owner !== null',
      why: 'an application shows the provider of another owner',
      tests: [bound],
    },
  ],
} satisfies MutantsOf
