import type { MutantsOf } from '../mutant.ts'

const routes = 'test/http/access.test.ts'
const bound = 'test/rights/bound-owners.test.ts'
const me = 'test/api/me.test.ts'

/** The door of the API: who is let in. */
export default {
  'src/http/access.ts': [
    {
      from: 'if (owner === undefined && !(await plausible(secret))) return none',
      to: '',
      why: 'a forged token costs a query',
      tests: [routes],
    },
    {
      from: 'if (open.length > 0) throw new Error(`routes without a permission',
      to: 'if (open.length > 99) throw new Error(`routes without a permission',
      why: 'a route without a permission starts',
      tests: [routes],
    },
    {
      from: 'filter((name) => !notNames.has(name) && !guard.known.has(name))',
      to: 'filter((name) => notNames.has(name) && !guard.known.has(name))',
      why: 'a route with a mistyped permission starts',
      tests: [routes],
    },
    {
      from: "if (permission === 'anyone' || request.is404) return",
      to: "if (permission !== 'superuser' || request.is404) return",
      why: 'callers of most routes are not authenticated',
      tests: [routes],
    },
    {
      from: '    if (real === null) {',
      to: '    if (real === null && permission === undefined) {',
      why: 'a request without a valid token is not refused',
      tests: [routes],
    },
    {
      from: 'judgeRate(reply)',
      to: '',
      why: 'requests are not limited',
      tests: ['test/api/rate-limits.test.ts'],
    },
    {
      from: 'if (permission !== undefined) requireAccess(request.actor, permission)',
      to: 'if (permission !== undefined) requireAccess(real, permission)',
      why: 'while impersonating, the permissions of the real user count',
      tests: [me, 'test/api/logs.test.ts', 'test/api/authorization/reads.test.ts'],
    },
    {
      from: "if (!actor.isSuperuser) throw new Problem('permission_denied', 'Only a superuser may do this.')",
      to: '',
      why: 'what is for superusers only is for all',
      tests: [routes],
    },
    {
      from: 'if (!needed.some((each) => allowsSome(actor, each))) throw denied(needed)',
      to: 'if (!needed.every((each) => allows(actor, each))) throw denied(needed)',
      why: 'a route that asks for one of two permissions asks for both',
      tests: [routes],
    },
    {
      from: 'if (!needed.some((each) => allowsSome(actor, each))) throw denied(needed)',
      to: '',
      why: 'no route asks for its permission',
      tests: [routes],
    },
    {
      from: 'open.delete(secret)',
      to: '',
      why: 'a token that was deleted is let in for ever',
      tests: [routes],
    },
    {
      from: 'open.set(secret, answer)',
      to: '',
      why: 'simultaneous requests with one token ask the database each',
      tests: [routes],
    },
    {
      from: "if (!allows(real, 'impersonate')) throw denied(['impersonate'])",
      to: '',
      why: 'all callers may act as another user',
      tests: [me],
    },
    {
      from: "if (actor === null) throw new Problem('permission_denied', 'Only a superuser may act as a superuser.')",
      to: 'if (actor === null) return effective',
      why: 'a user who is no superuser acts as a superuser',
      tests: [me],
    },
  ],
  'src/http/plausible.ts': [
    {
      from: 'if (isKnown() || others?.size === 0) return isKnown()',
      to: 'if (others !== undefined) return others.size > 0',
      why: 'a forged token costs a query while there are tokens without a checksum',
      tests: [routes],
    },
    {
      from: 'if (isKeyed(secret, keys)) return true',
      to: '',
      why: 'a flood of forged tokens refuses a valid one that the process has not seen',
      tests: [routes],
    },
  ],
  'src/http/apply-access.ts': [
    {
      from: 'if (!mayWrite(actor, kind)) throw',
      to: 'if (mayWrite(actor, kind)) throw',
      why: 'the permission of a kind is asked of those who have it',
      tests: ['test/api/transactional-access.test.ts'],
    },
    {
      from: "allows(actor, 'roll_back_run') || (actor.pk !== null && actor.pk === submitter)",
      to: "allows(actor, 'roll_back_run') || actor.pk !== null",
      why: 'a former run is applied again by any caller',
      tests: ['test/api/run-apply.test.ts'],
    },
    {
      from: "allows(actor, 'roll_back_run') || (actor.pk !== null && actor.pk === submitter)",
      to: 'actor.pk !== null && actor.pk === submitter',
      why: 'a superuser cannot apply the run of another',
      tests: ['test/api/authorization/run-applies.test.ts'],
    },
  ],
  'src/permissions.ts': [
    {
      from: 'rights.has(right) || rights.has(permissionOf(right))',
      to: 'rights.has(permissionOf(right)) || [...rights].some((each) => permissionOf(each) === permissionOf(right))',
      why: 'a permission for one owner counts for all',
      tests: [bound],
    },
    {
      from: '(owner !== null && actor.permissions.has(`${permission}@${owner}`))',
      to: 'allowsSome(actor, permission)',
      why: 'a permission for one owner opens the rows of each',
      tests: [bound],
    },
    {
      from: 'owners.length === 0 || !isForOwners(permission) ? permission',
      to: 'owners.length >= 0 || !isForOwners(permission) ? permission',
      why: 'the rights that a role gives by its owners are not compared',
      tests: [bound],
    },
  ],
} satisfies MutantsOf
