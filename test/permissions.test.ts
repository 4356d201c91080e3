import { expect, test } from 'vitest'
import {
  type Actor,
  allows,
  isOutOfBonds,
  isWithin,
  type Permission,
  permissionsOf,
  system,
} from '../src/permissions.ts'

const actor = (held: Permission[], isSuperuser = false): Actor => ({
  pk: 1,
  username: 'ada',
  isSuperuser,
  permissions: new Set(held),
})

test('a model has four permissions', () => {
  expect(permissionsOf('group')).toEqual(['view_group', 'add_group', 'change_group', 'delete_group'])
})

test.each<[string, Actor, boolean]>([
  ['to an actor who holds it', actor(['view_group']), true],
  ['not to an actor who holds another of the same model', actor(['add_group', 'change_group']), false],
  [
    'not to an actor who holds one that begins alike',
    actor(['view_groups' as Permission, 'view_group_member' as Permission]),
    false,
  ],
  ['not to an actor who holds nothing', actor([]), false],
  ['to a superuser who holds nothing', actor([], true), true],
  ['to the service itself', system, true],
])('a permission is allowed: %s', (_, who, expected) => {
  expect(allows(who, 'view_group')).toBe(expected)
})

test.each<[string, readonly string[] | null, string | null, boolean]>([
  ['not bound, and a document without a stack', null, null, false],
  ['not bound, and a stack', ['add_group'], 'one', false],
  ['bound, and its stack', ['add_group', 'stack:one'], 'one', false],
  ['bound, and another stack', ['add_group', 'stack:one'], 'two', true],
  ['bound, and a document without a stack', ['add_group', 'stack:one'], null, true],
  ['bound to no stack at all, and a document without a stack', ['add_group', 'stack:'], null, true],
  ['bound to no stack at all, and a stack', ['add_group', 'stack:'], 'one', true],
])('a token that is %s', (_, ceiling, stack, expected) => {
  expect(isOutOfBonds(ceiling === null ? {} : { ceiling: new Set(ceiling) }, stack)).toBe(expected)
})

test.each<[string, readonly string[], readonly string[], boolean]>([
  ['fewer rights', ['add_group'], ['add_group', 'view_group'], true],
  ['a right of one owner', ['add_application@one'], ['add_application'], true],
  ['another right', ['add_role'], ['add_group'], false],
  ['the same bond', ['add_group', 'stack:one'], ['add_group', 'stack:one', 'stack:two'], true],
  ['a bond to another stack', ['add_group', 'stack:two'], ['add_group', 'stack:one'], false],
  [
    'fewer rights and no bond, where the other is bound',
    ['add_group'],
    ['add_group', 'view_group', 'stack:one'],
    false,
  ],
  ['no bond, where the other is bound to no stack at all', ['add_group'], ['add_group', 'stack:'], false],
])('a token with %s may do no more: %s within %s', (_, rights, ceiling, expected) => {
  expect(isWithin(new Set(rights), new Set(ceiling))).toBe(expected)
})
