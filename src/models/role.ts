import { z } from 'zod'
import { withExample } from '../example.ts'
import { unknownName } from '../messages.ts'
import type { Permission } from '../permissions.ts'
import { defineModel } from './define.ts'
import { filledLine, name, ownerLabel, unordered, withoutTwice } from './fields.ts'

/** The most errors with a suggestion: as many as an answer lists. */
const maxSuggestions = 100
/** The most owners of a role. Each of its permissions counts once for each owner. */
const maxOwners = 100

/** @param permissions the closed list of all models' permissions: a role may hold no others */
export const defineRole = (permissions: readonly Permission[]) => {
  const known: ReadonlySet<string> = new Set(permissions)
  // The whole list is checked at once, because the name that was probably meant is searched for the first few only.
  const reportUnknown = (sent: readonly unknown[], context: z.core.$RefinementCtx): void => {
    const unknown = [...sent.entries()].filter(([, each]) => typeof each === 'string' && !known.has(each))
    for (const [place, [index, each]] of unknown.entries()) {
      const message = place < maxSuggestions ? unknownName('permission', String(each), known) : 'Unknown permission.'
      context.addIssue({ code: 'custom', path: [index], message, params: { code: 'invalid_choice' } })
    }
  }
  return defineModel({
    name: 'service_rbac.role',
    displayName: 'role',
    table: 'roles',
    key: 'uuid',
    identifiers: [['name']],
    attrs: z.object({
      name: name(),
      permissions: unordered(
        withoutTwice(
          z
            .array(filledLine(100))
            .max(known.size)
            .superRefine(reportUnknown, { when: ({ value }) => Array.isArray(value) }),
          'a permission',
        ),
      ).default([]),
      owners: unordered(
        withExample(
          withoutTwice(z.array(ownerLabel()).max(maxOwners), 'an owner'),
          ['team-a'],
          'Owners of applications and providers: its permissions for these hold only for their rows. Empty: for all rows.',
        ),
      ).default([]),
    }),
    unique: ['name'],
  })
}
