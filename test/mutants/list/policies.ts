import type { MutantsOf } from '../mutant.ts'

const groups = 'test/rights/escalation-groups.test.ts'
const people = 'test/rights/escalation-people.test.ts'
const tokens = 'test/rights/escalation-tokens.test.ts'
const last = 'test/rights/last-superuser.test.ts'
const moves = 'test/rights/names-and-moves.test.ts'
const takingAway = 'test/rights/taking-away.test.ts'

/** What each kind of row that grants rights asks of a caller. */
export default {
  'src/rights/policies.ts': [
    {
      from: "if (action === 'delete') return { was, is: undefined }",
      to: "if (action === 'delete') return { was, is: was }",
      why: 'a deletion takes nothing away',
      tests: [takingAway],
    },
    {
      from: 'is: after[name] === undefined ? was : after[name]',
      to: 'is: after[name]',
      why: 'a field with errors counts as emptied',
      tests: [takingAway],
    },
    {
      from: "change.action === 'delete' || fields.some((name) =>",
      to: 'fields.some((name) =>',
      why: 'a deletion frees no name',
      tests: [moves],
    },
    {
      from: "const named = concerns(change, ['name']) ? ",
      to: "const named = change.action === 'delete' ? ",
      why: 'a renamed role frees no name',
      tests: [moves],
    },
    {
      from: 'if (caller.isSuperuser) return isMoved && parentIs !== undefined ? { below, parent: parentIs } : null',
      to: 'if (caller.isSuperuser) return null',
      why: 'a superuser makes a circle of groups',
      tests: [groups],
    },
    {
      from: '(isMoved && parentWas !== undefined) || isUnflagged ||',
      to: 'isUnflagged ||',
      why: 'a group that leaves its parent takes nothing from its members',
      tests: [takingAway],
    },
    {
      from: '|| isUnflagged || roles.removed.length > 0',
      to: '|| roles.removed.length > 0',
      why: 'unsetting the flag takes nothing from the members',
      tests: [takingAway],
    },
    {
      from: '|| roles.removed.length > 0 || users.removed.length > 0,',
      to: '|| users.removed.length > 0,',
      why: 'removing a role takes nothing from the members',
      tests: [takingAway],
    },
    {
      from: 'isUnflagged || roles.removed.length > 0 || users.removed.length > 0,',
      to: 'isUnflagged || roles.removed.length > 0,',
      why: 'a removed member loses nothing that the caller must hold',
      tests: [takingAway],
    },
    {
      from: 'if (isFlagged || (isMoved && to.superuser)) {',
      to: 'if (isFlagged) {',
      why: 'a group moves below a superuser group without the permission of the flag',
      tests: [groups],
    },
    {
      from: "yield may('enable_group_superuser')",
      to: "yield may('disable_group_superuser')",
      why: 'the permission to unset the flag allows to set it',
      tests: [groups],
    },
    {
      from: "if (hasMembers) yield superuser('make superusers of its members')",
      to: '',
      why: 'a delegate makes superusers of the members of a group',
      tests: [groups],
    },
    {
      from: 'if (isUnflagged || (isMoved && from.superuser)) {',
      to: 'if (isUnflagged) {',
      why: 'a group leaves a superuser group without the permission of the flag',
      tests: [groups],
    },
    {
      from: "if (hasMembers) yield superuser('take superuser rights from its members')",
      to: '',
      why: 'a delegate takes superuser rights from the members of a group',
      tests: [takingAway],
    },
    {
      from: 'isMoved && (from.hasRoles || to.hasRoles)',
      to: 'isMoved && (from.hasRoles && to.hasRoles)',
      why: 'a move to a parent with roles needs no assign_role',
      tests: [moves],
    },
    {
      from: "roles.removed.length > 0) yield may('assign_role')",
      to: "roles.removed.length > 1) yield may('assign_role')",
      why: 'a role is removed from a group without assign_role',
      tests: [groups, takingAway],
    },
    {
      from: 'users.removed.length > 0 || (isMoved && hasMembers)',
      to: '(isMoved && hasMembers)',
      why: 'members are removed without add_user_to_group',
      tests: [takingAway],
    },
    {
      from: 'users.removed.length > 0 || (isMoved && hasMembers)',
      to: 'users.removed.length > 0',
      why: 'a branch with members moves without add_user_to_group',
      tests: [moves],
    },
    {
      from: "if (isMoved) yield holdsAll({ ...to, superuser: false }, 'its new parent')",
      to: '',
      why: 'a group moves below a parent with more rights than the caller holds',
      tests: [groups],
    },
    {
      from: "for (const role of roles.added) yield holdsAll(facts.role(role), 'the role')",
      to: '',
      why: 'a caller gives a role with permissions that the caller lacks',
      tests: [groups],
    },
    {
      from: 'superuser: itself.superuser && hasMembers',
      to: 'superuser: itself.superuser',
      why: 'an empty group with the flag cannot be changed with the permission of the flag',
      tests: [takingAway],
    },
    {
      from: 'if (takes) yield holdsAll({ ...itself',
      to: 'if (!takes) yield holdsAll({ ...itself',
      why: 'a caller takes away what the caller does not hold',
      tests: [takingAway],
    },
    {
      from: "if (concerns(change, ['name', 'attributes'])) yield holdsAll(itself, 'the group')",
      to: "if (concerns(change, ['attributes'])) yield holdsAll(itself, 'the group')",
      why: 'a group is renamed by a caller who holds less than it grants',
      tests: [moves],
    },
    {
      from: '{ superuser: after.is_superuser === true || to.superuser, permissions: to.permissions },',
      to: '{ superuser: after.is_superuser === true, permissions: to.permissions },',
      why: 'a delegate adds a member to a group below a superuser group (CVE-2026-40172)',
      tests: [groups],
    },
    {
      from: "for (const role of uuids(after.roles)) yield holdsAll(facts.role(role), 'the group')",
      to: '',
      why: 'a delegate adds a member to a group with more roles than the caller holds',
      tests: [groups],
    },
    {
      from: "if (isRegrouped) yield holdsAll(facts.concerned, 'one of the users')",
      to: '',
      why: 'a delegate adds and removes users with more rights than the caller',
      tests: [moves],
    },
    {
      from: "if (isChanged('username', change)) yield may('rename_user')",
      to: '',
      why: 'a user takes a name to which a document gives rights',
      tests: [people],
    },
    {
      from: "if (isChanged('name', change)) yield may('rename_group')",
      to: '',
      why: 'a group takes a name by which other systems give rights',
      tests: [moves],
    },
    {
      from: 'asks: (change) => (change.caller.isSuperuser || !setsManaged(change) ? null : {}),',
      to: 'asks: () => null,',
      why: 'a mapping of a caller is found by the name that others write',
      tests: [people],
    },
    {
      from: "const identity = ['username', 'name', 'email', 'is_active', 'attributes', 'path', 'type'] as const",
      to: "const identity = ['username', 'name', 'is_active', 'attributes', 'path', 'type'] as const",
      why: 'a caller changes the address of a user with more rights',
      tests: [people],
    },
    {
      from: "const identity = ['username', 'name', 'email', 'is_active', 'attributes', 'path', 'type'] as const",
      to: "const identity = ['username', 'email', 'is_active', 'attributes'] as const",
      why: 'a caller changes name, path and type of a user with more rights',
      tests: [people],
    },
    {
      from: "if (concerns(change, ['name', 'attributes'])) yield holdsAll(itself, 'the group')",
      to: "if (concerns(change, ['name'])) yield holdsAll(itself, 'the group')",
      why: 'a delegate writes the attributes of a group that grants more than the caller holds',
      tests: [moves],
    },
    {
      from: "yield holdsAll(facts.user(change.pk), 'that user')",
      to: 'yield null',
      why: 'a caller changes a user with more rights',
      tests: [people],
    },
    {
      from: "if (groups.length > 0) yield may('add_user_to_group')",
      to: '',
      why: 'a user joins a group without add_user_to_group',
      tests: [people],
    },
    {
      from: "if (change.action !== 'create' && isGiven) yield may('assign_role')",
      to: '',
      why: 'the permissions of a role that is given already change without assign_role',
      tests: [people, takingAway],
    },
    {
      from: 'permissions: [...added, ...removed, ...named] }',
      to: 'permissions: [...added, ...named] }',
      why: 'a caller takes permissions from a role that the caller does not hold',
      tests: [takingAway],
    },
    {
      from: 'permissions: [...added, ...removed, ...named] }',
      to: 'permissions: [...added, ...removed] }',
      why: 'a caller renames a role with more permissions than the caller holds',
      tests: [moves],
    },
    {
      from: '!isImpersonating && !isLimited && users.every',
      to: '!isLimited && users.every',
      why: 'while impersonating, a caller owns the tokens of the user',
      tests: [tokens],
    },
    {
      from: '!isImpersonating && !isLimited && users.every',
      to: '!isImpersonating && users.every',
      why: 'the holder of a token with a ceiling creates a token without it',
      tests: [tokens],
    },
    {
      from: 'users.every((user) => user === pk)',
      to: 'users.some((user) => user === pk)',
      why: 'the owner of one of two users counts as the owner of both',
      tests: [tokens, people],
    },
    {
      from: 'numbers((before ?? after).user)',
      to: 'numbers(after.user)',
      why: 'a token is judged by the user that the caller sends',
      tests: [tokens],
    },
    {
      from: 'endOf(after) < endOf(before)',
      to: 'endOf(after) > endOf(before)',
      why: 'the last token of the last superuser may end earlier',
      tests: [last],
    },
    {
      from: "if (!isSelf(caller, [owner])) yield holdsAll(facts.user(owner), 'its user')",
      to: "if (isSelf(caller, [owner])) yield holdsAll(facts.user(owner), 'its user')",
      why: 'a caller makes a token of a user with more rights',
      tests: [tokens],
    },
    {
      from: "(intent === 'verification' || intent === 'recovery'))",
      to: "(intent === 'verification'))",
      why: 'a delegate makes a recovery token',
      tests: [tokens],
    },
    {
      from: "if (differs('expiring', change) && expiring === false && !caller.renews)",
      to: "if (differs('expiring', change) && expiring === true && !caller.renews)",
      why: 'a delegate makes a token that does not expire',
      tests: [tokens],
    },
    {
      from: "(change.action === 'update' || change.after.managed !== null)",
      to: 'change.after.managed !== null',
      why: 'a delegate clears `managed`',
      tests: [tokens],
    },
    {
      from: 'Date.parse(expires) > latest)',
      to: 'Date.parse(expires) < latest)',
      why: 'a delegate makes a token for longer than TOKEN_MAX_DAYS',
      tests: [tokens],
    },
    {
      from: '[...numbers(before?.user), ...numbers(after.user)]',
      to: '[...numbers(after.user)]',
      why: 'a caller deletes the device of a user with more rights',
      tests: [people],
    },
  ],
} satisfies MutantsOf
