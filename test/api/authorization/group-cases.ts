import { randomUUID } from 'node:crypto'
import type { Installation, Made } from '../../support/kit.ts'
import type { Row } from './matrix.ts'
import { type Prepare, prefix } from './trial.ts'

/** Groups to create and change, and what is sent of them. */

const path = '/api/v3/core/groups/'
const name = () => `${prefix} ${randomUUID()}`

/** What the values of the table are made of; no row changes any of it. */
export type Scenery = {
  readonly role: string
  readonly plain: string
  readonly withRole: string
  readonly superusers: string
  readonly belowSuperusers: string
  readonly other: Made
  readonly third: Made
  readonly strong: Made
  readonly chief: Made
}

export async function scenery({ make }: Installation): Promise<Scenery> {
  const { pk: role } = await make.role(['view_userconsent'])
  const { pk: superusers } = await make.group({ superuser: true })
  return {
    role,
    superusers,
    plain: (await make.group()).pk,
    withRole: (await make.group({ roles: [role] })).pk,
    belowSuperusers: (await make.group({ parent: superusers })).pk,
    other: await make.user(),
    third: await make.user(),
    strong: await make.user({ permissions: ['view_userconsent'] }),
    chief: await make.user({ superuser: true }),
  }
}

type Before = { roles?: string[]; superuser?: boolean; parent?: string; users?: number[] }
type Case = {
  /** The group to change, beside its members. */
  readonly before?: Before
  readonly sent: Readonly<Record<string, unknown>>
}

/** Keys of the group itself, and of one below it, which are known when it is there. */
const [itself, below] = [Symbol('itself'), Symbol('below')]

const missing = { uuid: '6f7e0000-0000-4000-8000-00000000ffff', integer: 2_147_483_647 }

/** @param self the caller's key @param users who is in the group */
function cases(s: Scenery, self: number, users: readonly number[]): Record<string, Case | undefined> {
  const [caller, another] = [
    [...users, self],
    [...users, s.third.pk],
  ]
  return {
    // `any` is the matrix's word for a value that no rule singles out.
    'name: any': { sent: { name: name() } },
    'name: any, of a group with a role': { before: { roles: [s.role] }, sent: { name: name() } },
    'name: any, below a group with a role': { before: { parent: s.withRole }, sent: { name: name() } },
    'name: any, of superusers': { before: { superuser: true }, sent: { name: name() } },
    "name: any, below a superusers' group": { before: { parent: s.belowSuperusers }, sent: { name: name() } },
    'attributes: any': { sent: { attributes: { a: 1 } } },
    'attributes: any, of a group with a role': { before: { roles: [s.role] }, sent: { attributes: { a: 1 } } },
    'attributes: any, below a group with a role': { before: { parent: s.withRole }, sent: { attributes: { a: 1 } } },
    'attributes: any, of superusers': { before: { superuser: true }, sent: { attributes: { a: 1 } } },
    "attributes: any, below a superusers' group": {
      before: { parent: s.belowSuperusers },
      sent: { attributes: { a: 1 } },
    },
    'is_superuser: true': { sent: { is_superuser: true } },
    'is_superuser: false': { before: { superuser: true }, sent: { is_superuser: false } },
    'is_superuser: false, as it is': { sent: { is_superuser: false } },
    'parent: none': { sent: { parent: null } },
    'parent: none, as it is': { sent: { parent: null } },
    'parent: a plain group': { sent: { parent: s.plain } },
    'parent: a group with a role': { sent: { parent: s.withRole } },
    "parent: a superusers' group": { sent: { parent: s.superusers } },
    "parent: below a superusers' group": { sent: { parent: s.belowSuperusers } },
    'parent: none, from a plain group': { before: { parent: s.plain }, sent: { parent: null } },
    'parent: none, from a group with a role': { before: { parent: s.withRole }, sent: { parent: null } },
    "parent: none, from a superusers' group": { before: { parent: s.superusers }, sent: { parent: null } },
    'parent: itself': { sent: { parent: itself } },
    'parent: a group below it': { sent: { parent: below } },
    'parent: not there': { sent: { parent: missing.uuid } },
    'users: none': { sent: { users: [] } },
    'users: as they are': { sent: { users } },
    'users: self': { sent: { users: caller } },
    'users: another': { sent: { users: another } },
    'users: self, with is_superuser': { sent: { users: caller, is_superuser: true } },
    'users: another, with is_superuser': { sent: { users: another, is_superuser: true } },
    'users: self, with a role': { sent: { users: caller, roles: [s.role] } },
    'users: self, where all are superusers': { before: { superuser: true }, sent: { users: caller } },
    'users: another, where all are superusers': { before: { superuser: true }, sent: { users: another } },
    'users: none, where all are superusers': { before: { superuser: true }, sent: { users: [] } },
    'users: none, where all have a role': { before: { roles: [s.role] }, sent: { users: [] } },
    'users: none, below a group with a role': { before: { parent: s.withRole }, sent: { users: [] } },
    'users: none, of a stronger user': { before: { users: [s.strong.pk] }, sent: { users: [] } },
    'users: none, of a superuser': { before: { users: [s.chief.pk] }, sent: { users: [] } },
    'users: a stronger user': { sent: { users: [...users, s.strong.pk] } },
    'users: a superuser': { sent: { users: [...users, s.chief.pk] } },
    'users: self, where all have a role': { before: { roles: [s.role] }, sent: { users: caller } },
    'users: another, where all have a role': { before: { roles: [s.role] }, sent: { users: another } },
    "users: self, below a superusers' group": { before: { parent: s.belowSuperusers }, sent: { users: caller } },
    'users: self, below a group with a role': { before: { parent: s.withRole }, sent: { users: caller } },
    'users: not there': { sent: { users: [...users, missing.integer] } },
    'roles: none': { sent: { roles: [] } },
    'roles: as they are': { before: { roles: [s.role] }, sent: { roles: [s.role] } },
    'roles: one more': { sent: { roles: [s.role] } },
    'roles: none, from one': { before: { roles: [s.role] }, sent: { roles: [] } },
    'roles: not there': { sent: { roles: [missing.uuid] } },
  }
}

export const created =
  (s: Scenery): Prepare =>
  async (row, { self }) => {
    const found = caseOf(s, self.pk, [], row)
    const { parent, superuser, roles } = found.before ?? {}
    // What a group to change is, one to create becomes.
    const born = { ...(parent && { parent }), ...(superuser && { is_superuser: true }), ...(roles && { roles }) }
    const isTold = row.member === 'is_superuser' || row.member === 'parent'
    const body = { name: name(), ...(!isTold && born), ...found.sent }
    return { method: 'POST', url: path, body }
  }

export const changed =
  ({ make }: Installation, s: Scenery): Prepare =>
  async (row, { self }) => {
    const users = usersOf(row, self, s)
    const found = caseOf(s, self.pk, users, row)
    const group = await make.group({ name: name(), users, ...found.before })
    const key = { 'not there': randomUUID(), 'no uuid': 'no-uuid' }[row.whose] ?? group.pk
    const body: Record<string, unknown> = { ...found.sent }
    if (body.parent === itself) body.parent = group.pk
    if (body.parent === below) body.parent = (await make.group({ name: name(), parent: group.pk })).pk
    return {
      method: 'PATCH',
      url: `${path}${key}/`,
      body,
      ...(row.whose !== unsaid && { headers: { 'Gatewright-Allow': 'grants' } }),
      ...(row.whose !== 'no uuid' && { missing: `${path}${randomUUID()}/` }),
    }
  }

function caseOf(s: Scenery, self: number, users: readonly number[], { member, value }: Row): Case {
  const found = cases(s, self, users)[`${member}: ${value}`]
  if (found === undefined) throw new Error(`it is not said what ${member}: ${value} is`)
  return found
}

function usersOf({ whose }: Row, self: Made, { other }: Scenery): number[] {
  if (whose === 'own') return [self.pk]
  return whose === "another's" || whose === unsaid ? [other.pk] : []
}

/** What its member gains is not acknowledged. */
const unsaid = "another's, not acknowledged"
