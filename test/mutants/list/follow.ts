import type { MutantsOf } from '../mutant.ts'

const owners = 'test/api/owners.test.ts'
const prune = 'test/api/prune.test.ts'
const effects = 'test/api/side-effects.test.ts'
const check = 'test/apply/check.test.ts'
const bound = 'test/rights/bound-owners.test.ts'
const groups = 'test/rights/escalation-groups.test.ts'
const write = 'test/apply/write.test.ts'
const removal = 'test/api/application-delete.test.ts'
const meanwhile = 'test/rights/rights-taken-meanwhile.test.ts'
const ceiling = 'test/api/token-ceiling.test.ts'

/** Whose a row is, what follows from a document, and what is refused. */
export default {
  'src/apply/ownership.ts': [
    {
      from: 'return becomes === undefined ? [owner] : [owner, becomes]',
      to: 'return becomes === undefined ? [owner] : [becomes]',
      why: 'a takeover takes no permission for rows of the owner before',
      tests: [bound],
    },
    {
      from: 'for (const owner of prunedOwners(conditions)) named.set(owner, {})',
      to: '',
      why: 'a document that prunes names what it would delete to a caller without rights',
      tests: [bound],
    },
    {
      from: 'row === undefined || isForeign) return undefined',
      to: "row === undefined || isForeign || action === 'leave') return undefined",
      why: 'an entry that only creates says nothing about the owner of what is there',
      tests: [owners],
    },
    {
      from: 'createdBy !== null && createdBy === actor.pk',
      to: 'createdBy !== null || createdBy === actor.pk',
      why: 'all users are the maker of a row',
      tests: [owners],
    },
    {
      from: "action === 'delete' || origin.owner === label ? {} : { becomes: label }",
      to: '{}',
      why: 'a takeover leaves the label of the owner before',
      tests: [owners],
    },
    {
      from: 'if (origin.owner === label) {',
      to: 'if (origin.owner === label || label === null) {',
      why: 'a request without an owner changes what an owner manages',
      tests: [owners],
    },
    {
      from: 'if (origin.owner === null && isMaker)',
      to: 'if (origin.owner === null || isMaker)',
      why: 'an object without an owner is the own of all',
      tests: [owners],
    },
    {
      from: 'return allow.takeover ?',
      to: 'return !allow.takeover ?',
      why: 'what another owner manages is taken over without an acknowledgement',
      tests: [owners],
    },
  ],
  'src/apply/follow.ts': [
    {
      from: 'if (!conditions.replaceProvider) return []',
      to: '',
      why: 'the provider that an application loses is deleted unasked',
      tests: [effects],
    },
    {
      from: 'if (!isReplaced || named.has(row.model, row.pk)) return []',
      to: 'if (!isReplaced) return []',
      why: 'a provider that the document names is deleted with the application that loses it',
      tests: [effects],
    },
    {
      from: 'if (!isReplaced || named.has(row.model, row.pk)) return []',
      to: 'if (named.has(row.model, row.pk)) return []',
      why: 'a backchannel provider that an application gives up is deleted',
      tests: [effects],
    },
    {
      from: 'unnamedBy(reader, registry, findings, prunedOwners(conditions))',
      to: 'unnamedBy(reader, registry, findings, conditions.owner === null ? [] : [conditions.owner])',
      why: 'each document under an owner prunes',
      tests: [owners],
    },
    {
      from: 'addClaimed(rowsNamed(findings), registry, findings)',
      to: 'rowsNamed(findings)',
      why: 'a prune deletes what an entry refers to',
      tests: [prune],
      survives: 'a row that another one claims is kept as well',
    },
    {
      from: "deletes === rows.length || mode === 'plan'",
      to: "(deletes ?? 0) >= rows.length || mode === 'plan'",
      why: 'a prune deletes fewer rows than were acknowledged',
      tests: [prune],
    },
    {
      from: "deletes === rows.length || mode === 'plan'",
      to: "deletes !== null || mode === 'plan'",
      why: 'a prune deletes more rows than were acknowledged',
      tests: [prune],
    },
    {
      from: "if (action !== 'delete' || row === undefined) return",
      to: "if (action === 'delete' || row === undefined) return",
      why: 'an application that loses its provider is not reported by name',
      tests: [effects],
    },
  ],
  'src/apply/finding.ts': [
    {
      from: "['permission_denied', 'not_found', 'precondition_failed', 'invalid', 'conflict'] as const",
      to: "['invalid', 'permission_denied', 'not_found', 'precondition_failed', 'conflict'] as const",
      why: 'errors are shown to a caller who is denied',
      tests: [check],
    },
    {
      from: "['permission_denied', 'not_found', 'precondition_failed', 'invalid', 'conflict'] as const",
      to: "['permission_denied', 'not_found', 'precondition_failed', 'conflict', 'invalid'] as const",
      why: 'a conflict hides the errors that are behind it',
      tests: ['test/apply/conflicts.test.ts'],
    },
  ],
  'src/apply/refusal.ts': [
    {
      from: "this.reason === 'permission_denied' ||",
      to: '',
      why: 'a denial shows the others',
      tests: ['test/apply/check.test.ts'],
    },
    {
      from: 'if (objections.length > 0) throw new Refusal(objections)',
      to: 'if (objections.length > 1) throw new Refusal(objections)',
      why: 'a single objection refuses nothing',
      tests: [check, groups],
    },
  ],
  'src/apply/write.ts': [
    {
      from: 'if (first !== undefined)',
      to: 'if (first === undefined)',
      why: 'a single write is not audited',
      tests: [write],
    },
    {
      from: 'textErrors === undefined ? [] : [textErrors]',
      to: '[]',
      why: 'a body with unreadable text is written',
      tests: [write, 'test/api/groups-write.test.ts'],
    },
    {
      from: "state === 'must_created' ? steps : steps.map(",
      to: 'state !== null ? steps : steps.map(',
      why: 'a change of a row that is not there creates it',
      tests: [write],
    },
    {
      from: 'error instanceof Overtaken || isCollision(error)',
      to: 'isCollision(error)',
      why: 'a name that was taken meanwhile is a conflict without its field',
      tests: [write],
    },
    {
      from: 'error instanceof Overtaken || isCollision(error)',
      to: 'error instanceof Overtaken',
      why: 'writes that collide fail',
      tests: [write],
    },
    {
      from: 'text === null ? [] : [{ is:',
      to: 'text !== null ? [] : [{ is:',
      why: 'an application that changed since it was read is deleted',
      tests: [removal],
    },
    {
      from: "WHERE ${where.join(' AND ')} FOR UPDATE`",
      to: "WHERE ${where.join(' AND ')}`",
      why: 'If-Match is compared with a row that another transaction is changing',
      tests: [removal],
    },
    {
      from: "error.objections[0]?.is !== 'gone') throw error",
      to: "error.objections[0]?.is === 'gone') throw error",
      why: 'a caller whose rights are gone while waiting is refused as if authenticated',
      tests: [meanwhile],
    },
    {
      from: 'if (canRetry(error)) throw busy(error)',
      to: '',
      why: 'writes that collide too often are a bug of the service',
      tests: [write],
      survives: 'no test makes one write collide five times in a row',
    },
  ],
  'src/apply/token-key.ts': [
    {
      from: '!(token.userPk === actor.pk || allows(actor, permission))',
      to: '!(token.userPk === actor.pk || actor)',
      why: 'the key of a token is shown without view_token_key',
      tests: ['test/api/tokens-write.test.ts'],
    },
    {
      from: "refuseImpersonator(actor, 'view_token_key')",
      to: '',
      why: 'the key of a token is shown to one who only impersonates its user',
      tests: ['test/api/tokens-write.test.ts'],
    },
    {
      from: 'if (impersonator !== undefined && !allows(impersonator, permission))',
      to: 'if (impersonator !== undefined && allows(impersonator, permission))',
      why: 'a token is deleted by one who only impersonates its user',
      tests: ['test/api/tokens-write.test.ts', 'test/api/token-delete.test.ts'],
    },
    {
      from: 'return userPk === self ? null : permissions',
      to: 'return userPk !== self ? null : permissions',
      why: 'a token whose key another user views keeps all rights of its user',
      tests: [ceiling],
    },
    {
      from: 'AND sealed_key IS NOT NULL FOR UPDATE`',
      to: 'AND sealed_key IS NOT NULL`',
      why: 'the key of a token is shown to both of two callers at the same time',
      tests: ['test/api/token-view.test.ts'],
    },
    {
      from: 'row === undefined || !row.isFresh',
      to: 'row === undefined',
      why: 'the key of a token is shown after a day',
      tests: ['test/api/tokens-write.test.ts'],
    },
    {
      from: '(row.ceiling === null ? limit : [...meet(new Set(limit), new Set(row.ceiling))])',
      to: 'limit',
      why: 'viewing the key of a token lifts its ceiling',
      tests: [ceiling],
    },
    {
      from: 'const data = { sealedKey: null, ...(ceiling',
      to: 'const data = { ...(ceiling',
      why: 'the key of a token is shown again and again',
      tests: ['test/api/tokens-write.test.ts'],
    },
    {
      from: 'audit(engineTx, keyring, { actor, action, changes, requestId })',
      to: 'void [audit, engineTx, changes, requestId]',
      why: 'the view of a key is not audited',
      tests: ['test/api/tokens-write.test.ts', 'test/api/logs.test.ts'],
    },
    {
      from: '?.every((right) => covers(ceiling, right)) === true',
      to: ' !== undefined',
      why: 'a token with a ceiling views the keys of tokens of its user that carry more',
      tests: [ceiling],
    },
    {
      from: "&& other.intent === 'api' && endOf(other) <= endOf(own)",
      to: "&& other.intent === 'api'",
      why: 'a token with a ceiling views the keys of tokens of its user that end later',
      tests: [ceiling],
    },
    {
      from: "&& other.intent === 'api' && endOf",
      to: '&& endOf',
      why: 'a token with a ceiling deletes tokens of its user that are no api tokens',
      tests: [ceiling],
    },
    {
      from: 'new Date(String(expires)) }) > endOf(own))',
      to: 'new Date(String(expires)) }) > Number.POSITIVE_INFINITY)',
      why: 'a token with a ceiling makes one that ends later',
      tests: [ceiling],
    },
    {
      from: "|| (body.intent ?? 'api') !== 'api') return",
      to: ') return',
      why: 'a token with a ceiling makes one of another intent',
      tests: [ceiling],
    },
    {
      from: 'own === null || fields.user !== actor.pk ||',
      to: 'own === null ||',
      why: 'a token with a ceiling gives all of it to another user',
      tests: [ceiling],
    },
    {
      from: 'if (limit !== null) lockRights(engineTx)',
      to: '',
      why: 'the owner of a token becomes the last superuser while it gets a ceiling',
      tests: ['test/api/token-view.test.ts'],
    },
  ],
} satisfies MutantsOf
