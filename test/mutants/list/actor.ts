import type { MutantsOf } from '../mutant.ts'

const meanwhile = 'test/rights/rights-taken-meanwhile.test.ts'
const former = 'test/rights/former-documents.test.ts'
const groups = 'test/rights/escalation-groups.test.ts'
const tokens = 'test/rights/escalation-tokens.test.ts'
const gains = 'test/rights/gains.test.ts'
const ceiling = 'test/api/token-ceiling.test.ts'
const last = 'test/rights/last-superuser.test.ts'
const moves = 'test/rights/names-and-moves.test.ts'

/** Whose rights a caller has, and what they are. */
export default {
  'src/permissions.ts': [
    {
      from: '!isUser || (author.ceiling',
      to: '!isUser && (author.ceiling',
      why: "what is the caller's own is written by the document of another",
      tests: [former],
    },
    {
      from: "allows(real, 'impersonate') && (real.isSuperuser",
      to: '(real.isSuperuser',
      why: 'a waiting run is applied for a caller who may no longer impersonate',
      tests: [meanwhile],
    },
    {
      from: '(real.isSuperuser || !effective.isSuperuser)',
      to: '(real.isSuperuser || effective !== real)',
      why: 'a user who is no superuser acts as a superuser',
      tests: ['test/api/me.test.ts'],
    },
  ],
  'src/rights/actor.ts': [
    {
      from: 'if (!superuser && isOfOthers({ ...actor, authors: [keys] }))',
      to: 'if (superuser && isOfOthers({ ...actor, authors: [keys] }))',
      why: 'a former document is applied with rights that its submitter has not',
      tests: [former],
    },
    {
      from: 'if (author === null) return null',
      to: 'if (author === null) continue',
      why: 'the document of a deactivated user is applied with the rights of the caller alone',
      tests: [former],
    },
    {
      from: '? meet(actor.permissions, actor.impersonator.permissions)',
      to: '? actor.permissions',
      why: 'what is created while impersonating holds more than the real user',
      tests: [ceiling],
    },
    {
      from: '...(actor.impersonator?.isSuperuser === false',
      to: '...(actor.impersonator !== undefined',
      why: 'what a superuser creates while impersonating holds only what its own roles hold',
      tests: [tokens],
    },
    {
      from: "t.intent = 'api' AND u.is_active AND",
      to: 'u.is_active AND',
      why: 'a token of any intent authenticates',
      tests: ['test/api/tokens-write.test.ts', 'test/api/me.test.ts'],
    },
    {
      from: "t.intent = 'api' AND u.is_active AND",
      to: "t.intent = 'api' AND",
      why: 'the token of an inactive user authenticates',
      tests: ['test/api/transactional-access.test.ts'],
    },
    {
      from: '(NOT t.expiring OR t.expires > now())`',
      to: '(NOT t.expiring OR t.expires IS NOT NULL)`',
      why: 'an expired token authenticates',
      tests: ['test/api/transactional-access.test.ts'],
    },
    {
      from: '(NOT t.expiring OR t.expires > now())`',
      to: '(t.expires > now())`',
      why: 'a token that does not expire does not authenticate',
      tests: ['test/api/transactional-access.test.ts'],
    },
    {
      from: 'u.${column} = ${value} AND u.is_active`',
      to: 'u.${column} = ${value}`',
      why: 'an inactive user can be impersonated, and its waiting runs are applied',
      tests: [meanwhile],
    },
    {
      from: 'SELECT DISTINCT a.ancestor_pk AS pk FROM memberships m',
      to: 'SELECT DISTINCT a.group_pk AS pk FROM memberships m',
      why: 'roles are not inherited from ancestors',
      tests: [groups],
    },
    {
      from: 'SELECT a.ancestor_pk AS pk FROM group_ancestors a WHERE',
      to: 'SELECT a.group_pk AS pk FROM group_ancestors a WHERE',
      why: 'what a group gives does not count what it inherits',
      tests: [groups],
    },
    {
      from: 'actor.isSuperuser ? rights : meet(actor.permissions, rights)',
      to: 'ceiling',
      why: 'a token holds its ceiling, also what its user has lost',
      tests: [ceiling, tokens],
    },
    {
      from: '  isSuperuser: false,',
      to: '',
      why: 'a token with a ceiling makes a superuser of its holder',
      tests: [tokens, ceiling],
    },
    {
      from: '{ ...limited(effective, real.ceiling), impersonator: real }',
      to: '{ ...effective, impersonator: real }',
      why: 'impersonation lifts the ceiling of the token',
      tests: [ceiling],
    },
    {
      from: 'mayActAs(real, effective) ?',
      to: 'mayActAs(effective, real) ?',
      why: 'a user who is no superuser acts as a superuser',
      tests: ['test/api/me.test.ts'],
    },
    {
      from: 'return found && { ...limited(found, ceiling),',
      to: 'return found && { ...found,',
      why: 'a run is applied without the ceiling of its token',
      tests: [ceiling],
    },
    {
      from: 'effective && real && actAs(limited(real, ceiling), effective)',
      to: 'effective && real && actAs(real, effective)',
      why: 'a run that was submitted while impersonating is applied without the ceiling of its token',
      tests: [ceiling],
    },
    {
      from: 'ceiling === null ? found : {',
      to: 'ceiling !== undefined ? found : {',
      why: 'the ceiling of a token is ignored when it authenticates',
      tests: [ceiling],
    },
  ],
  'src/rights/gains.ts': [
    {
      from: 'delta === null || !mayGive(delta)',
      to: 'delta === null || mayGive(delta)',
      why: 'nothing that a document gives is judged',
      tests: [gains],
    },
    {
      from: 'parent !== null && parent !== was.parent',
      to: 'parent === null && parent !== was.parent',
      why: 'a move below a group with rights gives them to members who are not named',
      tests: [gains],
    },
    {
      from: '(superuser && !was.superuser)',
      to: '(superuser && was.superuser)',
      why: 'the superuser flag is set over members who are not named',
      tests: [gains],
    },
    {
      from: 'worn.some((role) => !was.roles.includes(role))',
      to: 'worn.some((role) => was.roles.includes(role))',
      why: 'a role is given to members who are not named',
      tests: [gains],
    },
    {
      from: 'was !== undefined && permissions.some(',
      to: 'was === undefined && permissions.some(',
      why: 'a role that users wear gets permissions, and its users are not named',
      tests: [gains],
    },
    {
      from: 'joined.length > 0 ||',
      to: 'joined.length < 0 ||',
      why: 'users whom a look-up finds join a group with rights',
      tests: [gains],
    },
    {
      from: 'if (reference instanceof KeyOf) return',
      to: 'if (!(reference instanceof KeyOf)) return',
      why: 'a new role is not seen by the check',
      tests: [gains],
    },
    {
      from: 'earlier === undefined ? state : joinedStates(',
      to: 'earlier !== undefined ? state : joinedStates(',
      why: 'what an earlier entry of the document gives is not seen by the check',
      tests: [gains],
    },
    {
      from: 'first?.users ?? was.users',
      to: 'first?.users',
      why: 'members who stay count as users who join, when an earlier entry does not name them',
      tests: [gains],
    },
    {
      from: 'add(row?.pk ?? identity?.pk, undefined)',
      to: 'add(row?.pk, undefined)',
      why: 'a user whom the document creates counts as not named',
      tests: [gains],
    },
  ],
  'src/rights/gains-sql.ts': [
    {
      from: 'a ON a.ancestor_pk = c.pk',
      to: 'a ON a.group_pk = c.pk',
      why: 'members of the groups below get rights without being named',
      tests: [gains],
    },
    {
      from: 'AND s.pk = l.ancestor_pk WHERE s.superuser',
      to: 'AND s.pk = l.ancestor_pk WHERE NOT s.superuser',
      why: 'a flag that is set is not seen by the check',
      tests: [gains],
    },
    {
      from: 'UNION SELECT l.user_pk, h.number FROM leaving l',
      to: 'EXCEPT SELECT l.user_pk, h.number FROM leaving l',
      why: 'who keeps by another group what a document takes counts as one who gains',
      tests: [gains],
    },
    {
      from: 'user_pk NOT IN (SELECT user_pk FROM named)',
      to: 'true',
      why: 'users whom the document names count as not named',
      tests: [gains],
    },
    {
      from: 'UNION SELECT user_pk FROM leaving UNION SELECT user_pk FROM named',
      to: 'UNION SELECT user_pk FROM leaving',
      why: 'users whom the document names are counted among the members of a large group',
      tests: [gains],
    },
    {
      from: 'SELECT user_pk FROM together UNION',
      to: '',
      why: 'who has the rights already is counted among the members of a large group',
      tests: [gains],
    },
    {
      from: 's.users - coalesce(cardinality(s.apart), 0) AS users',
      to: 's.users AS users',
      why: 'of a large group, members who differ from the others are counted twice',
      tests: [gains],
    },
    {
      from: "ARRAY[r, split_part(r, '@', 1), 'superuser']",
      to: "ARRAY[r, split_part(r, '@', 1)]",
      why: 'a superuser counts as one who gains',
      tests: [gains],
    },
    {
      from: "ARRAY[r, split_part(r, '@', 1), 'superuser']",
      to: "ARRAY['superuser']",
      why: 'who has the rights already counts as one who gains',
      tests: [gains],
    },
  ],
  'src/rights/rights.ts': [
    {
      from: 'WHERE a.ancestor_pk = $4::uuid) AS "hasMembers"',
      to: 'WHERE a.group_pk = $4::uuid AND a.ancestor_pk = $4::uuid) AS "hasMembers"',
      why: 'members of the groups below do not count',
      tests: [groups],
    },
    {
      from: 'a.group_pk = $5::uuid AND a.ancestor_pk = $4::uuid) AS "isCircle"',
      to: 'a.group_pk = $4::uuid AND a.ancestor_pk = $5::uuid) AS "isCircle"',
      why: 'a circle of groups is not seen',
      tests: [groups],
    },
    {
      from: 'ON gr.group_pk = a.ancestor_pk WHERE a.group_pk = k)',
      to: 'ON gr.group_pk = a.group_pk WHERE a.group_pk = k)',
      why: 'a parent that inherits its roles counts as one without roles',
      tests: [moves],
    },
    {
      from: 'ON m.group_pk = b.group_pk WHERE b.ancestor_pk = $7::uuid',
      to: 'ON m.group_pk = b.group_pk WHERE b.group_pk = $7::uuid',
      why: 'of a branch that moves, the members of the groups below are not protected',
      tests: [moves],
    },
    {
      from: 'tx.send({ text: `SELECT pg_advisory_xact_lock(${rightsLock})`, values: [] })',
      to: 'tx.send({ text: `SELECT ${rightsLock}`, values: [] })',
      why: 'changes of rights are not one after the other',
      tests: [last],
    },
    {
      from: "u.is_active AND t.intent = 'api' AND t.ceiling IS NULL",
      to: "t.intent = 'api' AND t.ceiling IS NULL",
      why: 'an inactive superuser counts as the last one',
      tests: [last],
    },
    {
      from: "u.is_active AND t.intent = 'api' AND t.ceiling IS NULL",
      to: 'u.is_active AND t.ceiling IS NULL',
      why: 'a superuser with a token that does not authenticate counts as the last one',
      tests: [last],
    },
    {
      from: "u.is_active AND t.intent = 'api' AND t.ceiling IS NULL",
      to: "u.is_active AND t.intent = 'api'",
      why: 'a superuser with a limited token counts as the last one',
      tests: [last],
    },
    {
      from: '(NOT t.expiring OR t.expires > now()) AND t.pk',
      to: '(NOT t.expiring OR t.expires IS NOT NULL) AND t.pk',
      why: 'a superuser with an expired token counts as the last one',
      tests: [last],
    },
    {
      from: ' AND t.pk <> ALL($1::uuid[]) LIMIT 1',
      to: ' AND $1::uuid[] IS NOT NULL LIMIT 1',
      why: 'a token whose end is earlier now counts for the last superuser',
      tests: [last],
    },
  ],
  'src/rights/settings.ts': [
    {
      from: "attributes->'settings' = $4::jsonb AND ($5 OR (NOT settings_by_superuser",
      to: "attributes->'settings' = $4::jsonb AND (true OR $5 OR (NOT settings_by_superuser",
      why: 'settings that are sent again by a caller with fewer rights lose what their writer held',
      tests: ['test/api/me.test.ts'],
    },
    {
      from: "action === 'create' || !isDeepStrictEqual(",
      to: "action === 'create' && !isDeepStrictEqual(",
      why: 'new settings keep what the writer before held',
      tests: ['test/api/me.test.ts'],
    },
  ],
} satisfies MutantsOf
