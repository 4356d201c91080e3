import { randomUUID } from 'node:crypto'
import type { Installation, Made } from '../../support/kit.ts'
import type { Row } from './matrix.ts'
import { type Prepare, prefix } from './trial.ts'

/** Tokens to create, change, delete and view, by whose they are. */

const path = '/api/v3/core/tokens/'
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)

/** Owners that are not the caller. */
export type Owners = {
  readonly other: Made
  readonly third: Made
  readonly stronger: Made
  readonly superuser: Made
}

export const owners = async ({ make }: Installation): Promise<Owners> => ({
  other: await make.user(),
  third: await make.user(),
  stronger: await make.user({ permissions: ['view_userconsent'] }),
  superuser: await make.user({ superuser: true }),
})

type Sent = { value: unknown; before?: { managed?: string } }

function sent({ member, value }: Row, owner: Made, self: Made, { third }: Owners): Sent {
  const values: Record<string, Sent | undefined> = {
    // `any` is the matrix's word for a value that no rule singles out.
    'identifier: any': { value: named() },
    'description: any': { value: 'another' },
    'intent: api': { value: 'api' },
    // A changed token is an `api` token before.
    'intent: the same': { value: 'api' },
    'intent: another': { value: 'app_password' },
    'intent: app_password': { value: 'app_password' },
    'intent: verification': { value: 'verification' },
    'intent: recovery': { value: 'recovery' },
    'user: its owner': { value: owner.pk },
    'user: self': { value: self.pk },
    'user: another': { value: third.pk },
    'user: not there': { value: 2_147_483_647 },
    'expires: in 300 days': { value: inDays(300).toISOString() },
    'expires: in 400 days': { value: inDays(400).toISOString() },
    'expires: in the past': { value: inDays(-1).toISOString() },
    'expiring: true': { value: true },
    'expiring: false': { value: false },
    'owners: one': { value: ['team-a'] },
    'stacks: one': { value: ['corp/identity'] },
    'managed: none': { value: null },
    'managed: a name': { value: randomUUID() },
    'managed: none, from a name': { value: null, before: { managed: randomUUID() } },
  }
  return values[`${member}: ${value}`] ?? fail(`it is not said what ${member}: ${value} is`)
}

function ownerOf({ whose }: Row, self: Made, { other, stronger, superuser }: Owners): Made {
  switch (whose) {
    case 'own':
      return self
    case "another's":
    case 'not there':
      return other
    case "stronger's":
      return stronger
    case "superuser's":
      return superuser
    default:
      return fail(`there is no owner ${whose}`)
  }
}

function fail(message: string): never {
  throw new Error(message)
}

/** Rows that `try` deletes: a user has at most 100 tokens. */
const named = () => `${prefix}-${randomUUID()}`

export const created =
  (crowd: Owners): Prepare =>
  async (row, { self }) => {
    const owner = ownerOf(row, self, crowd)
    const { value } = sent(row, owner, self, crowd)
    // A body for the caller's own token has no `user`.
    const forWhom = row.whose === 'own' ? {} : { user: owner.pk }
    return { method: 'POST', url: path, body: { identifier: named(), ...forWhom, [row.member]: value } }
  }

export const changed =
  ({ make }: Installation, crowd: Owners): Prepare =>
  async (row, { self }) => {
    const owner = ownerOf(row, self, crowd)
    const { value, before } = sent(row, owner, self, crowd)
    const identifier = named()
    await make.token(owner.pk, { identifier, expires: inDays(10), ...before })
    const missing = `${path}${randomUUID()}/`
    const url = row.whose === 'not there' ? `${path}${randomUUID()}/` : `${path}${identifier}/`
    return { method: 'PATCH', url, missing, body: { [row.member]: value } }
  }

export const removed =
  ({ make }: Installation, crowd: Owners): Prepare =>
  async (row, { self }) => {
    const identifier = named()
    await make.token(ownerOf(row, self, crowd).pk, { identifier })
    const url = (name: string) => `${path}${name}/`
    const missing = url(randomUUID())
    return { method: 'DELETE', url: row.whose === 'not there' ? missing : url(identifier), missing }
  }

export const read =
  ({ make }: Installation, crowd: Owners): Prepare =>
  async (row, { self }) => {
    const identifier = named()
    await make.token(ownerOf(row, self, crowd).pk, { identifier })
    const url = (name: string) => `${path}${name}/`
    const asked = url(row.whose === 'not there' ? randomUUID() : identifier)
    return { method: 'GET', url: asked, missing: url(randomUUID()) }
  }

export const viewed =
  ({ admin, db }: Installation, crowd: Owners): Prepare =>
  async (row, { self }) => {
    const identifier = named()
    const headers = { 'content-type': 'application/json' }
    const made = await admin.send({ method: 'POST', url: path, headers, payload: JSON.stringify({ identifier }) })
    if (made.status !== 201) fail(made.text)
    // Not by its owner: one of them is not active, and gets no new token.
    await db.token.update({ where: { identifier }, data: { userPk: ownerOf(row, self, crowd).pk } })
    const url = (name: string) => `${path}${name}/view_key/`
    if (row.value === 'seen before') await admin.get(url(identifier))
    const asked = url(row.whose === 'not there' ? randomUUID() : identifier)
    return { method: 'GET', url: asked, missing: url(randomUUID()) }
  }
