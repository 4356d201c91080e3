import type { MutantsOf } from '../mutant.ts'

const groups = 'test/rights/escalation-groups.test.ts'
const people = 'test/rights/escalation-people.test.ts'
const tokens = 'test/rights/escalation-tokens.test.ts'
const last = 'test/rights/last-superuser.test.ts'
const meanwhile = 'test/rights/rights-taken-meanwhile.test.ts'
const takingAway = 'test/rights/taking-away.test.ts'
const ceiling = 'test/api/token-ceiling.test.ts'

/** Where a caller is denied. */
export default {
  'src/rights/policy.ts': [
    {
      from: 'if (missing !== null) return isMissing(missing, actor, effect)',
      to: '',
      why: 'the permission of the entry itself is not asked for',
      tests: ['test/api/transactional-access.test.ts', 'test/apply/check.test.ts'],
    },
    {
      from: 'const policy = policyOf(effect.step)',
      to: 'const policy = policyOf(effect.step) && undefined',
      why: 'the policy of the model is not asked',
      tests: [groups],
    },
    {
      from: 'question === null || question === undefined) return null',
      to: 'question === null || question === undefined || engine) return null',
      why: 'no policy is asked',
      tests: [groups],
    },
    {
      from: "if (action === 'unchanged' || action === 'leave') return undefined",
      to: "if (action === 'unchanged' || action === 'leave' || action === 'delete') return undefined",
      why: 'deletions are not judged',
      tests: [takingAway],
    },
    {
      from: 'isImpersonating: actor.impersonator !== undefined',
      to: 'isImpersonating: false',
      why: 'policies do not know that the caller impersonates',
      tests: [tokens],
    },
    {
      from: 'isLimited: (actor.ceiling !== undefined && actor.renews !== true)',
      to: 'isLimited: false',
      why: 'policies do not know the ceiling of the token',
      tests: [tokens],
    },
    {
      from: '[actor, actor.impersonator ?? actor].every(',
      to: '[actor, actor.impersonator ?? actor].some(',
      why: 'while impersonating, a caller delegates what one of both users holds',
      tests: [people],
    },
    {
      from: '(actor.isSuperuser || current.superuser || covers(now, right))',
      to: 'true',
      why: 'rights that were revoked since the login are delegated',
      tests: [people],
    },
    {
      from: 'if (superuser) return `${who} has superuser rights',
      to: "if (superuser && who === '') return `${who} has superuser rights",
      why: 'superuser rights can be delegated by a caller who has all the permissions',
      tests: [groups, people, tokens],
    },
    {
      from: '(permission) => (allows(actor, permission) ? null : isMissing(permission))',
      to: '(permission) => (holds(permission) || permission ? null : isMissing(permission))',
      why: 'no permission of a policy is asked for',
      tests: [groups],
    },
    {
      from: 'superuser: (what) => (all ? null :',
      to: 'superuser: (what) => (all || what ? null :',
      why: 'what is for superusers only is for all',
      tests: [groups],
    },
    {
      from: 'actor.ceiling === undefined && !isOfOthers(actor) ? actor.pk : null',
      to: 'actor.ceiling?.size !== -1 && !isOfOthers(actor) ? actor.pk : null',
      why: 'the holder of a token with a ceiling sees the secrets of its user',
      tests: [ceiling, tokens],
    },
    {
      from: 'pk: (actor.impersonator ?? actor).pk,',
      to: 'pk: actor.pk,',
      why: 'a token that is made while impersonating names the wrong creator',
      tests: [ceiling],
    },
    {
      from: 'permissions: superuser ? null : (actor.renews',
      to: 'permissions: permissions.length > 0 ? null : (actor.renews',
      why: 'a token for another user has no ceiling',
      tests: [tokens, ceiling],
    },
    {
      from: 'if (isSuperuser(actor) || selfOf(actor) === user) return true',
      to: 'if (isSuperuser(actor) || selfOf(actor) !== user) return true',
      why: 'a caller sees the secrets of a user with more rights',
      tests: ['test/api/tokens-write.test.ts', 'test/api/token-delete.test.ts'],
    },
    {
      from: "if (step.state === 'absent') return true",
      to: '',
      why: 'a deletion of a group does not take the lock of rights',
      tests: [last],
    },
    {
      from: "(step.attrs.has('name') || step.was !== undefined)",
      to: '(step.was !== undefined)',
      why: 'a change of a name does not take the lock of rights',
      tests: [meanwhile],
    },
    {
      from: 'return mayRename || decides.some',
      to: 'return mayRename && decides.some',
      why: 'changes of rights do not take the lock of rights',
      tests: [last],
    },
    {
      from: "(step.state === 'absent' || takes.some((name) => step.attrs.has(name)))",
      to: "(step.state === 'absent')",
      why: 'when all superusers have lost their tokens, a change of another is to blame',
      tests: [last],
    },
    {
      from: "if (action === 'delete') return takesAway.length > 0 ? [step.path] : []",
      to: "if (action === 'delete') return []",
      why: 'the last superuser may be deleted',
      tests: [last],
    },
    {
      from: 'ends?.(change) === false) return []',
      to: 'ends?.(change) !== undefined) return []',
      why: 'the last token of the last superuser may end earlier',
      tests: [last],
    },
    {
      from: 'if (change !== undefined) ended.push(String(effect.row?.pk))',
      to: '',
      why: 'a token that ends soon counts for the last superuser',
      tests: [last],
    },
    {
      from: 'if (!had || paths.length === 0 ||',
      to: 'if (had || paths.length === 0 ||',
      why: 'the last superuser may be removed',
      tests: [last],
    },
  ],
} satisfies MutantsOf
