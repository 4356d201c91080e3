import { hash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'

/** The users of this example, from a file. `node users.ts < password` prints what the file has in place of a password. */

export type User = {
  readonly pk: number
  readonly uuid: string
  readonly username: string
  readonly name: string
  readonly email: string
  readonly groups: readonly { readonly name: string }[]
  readonly attributes: Readonly<Record<string, unknown>>
}

type Stored = User & { readonly password: string }

const derive = promisify<string, Buffer, number, { N: number; r: number; p: number }, Buffer>(scrypt)
const cost = { N: 16_384, r: 8, p: 5 }

const users = new Map<string, Stored>(
  (JSON.parse(readFileSync(new URL('users.json', import.meta.url), 'utf8')) as Stored[]).map((user) => [
    user.username,
    user,
  ]),
)

export function findUser(username: string): User | undefined {
  const { password: _, ...user } = users.get(username) ?? { password: '', username: '' }
  return user.username === '' ? undefined : (user as User)
}

/** An unknown name takes as long as a wrong password. */
export async function isPasswordOf(username: string, password: string): Promise<boolean> {
  const [salt = '', digest = ''] = (users.get(username)?.password ?? `${'A'.repeat(22)}.${'A'.repeat(43)}`).split('.')
  const expected = Buffer.from(digest, 'base64url')
  const actual = await derive(password, Buffer.from(salt, 'base64url'), expected.length, cost)
  return timingSafeEqual(actual, expected) && users.has(username)
}

/** The subject of tokens, as the provider wants it. */
export function subjectOf(user: User, mode: string): string {
  switch (mode) {
    case 'user_id':
      return String(user.pk)
    case 'user_uuid':
      return user.uuid
    case 'user_username':
      return user.username
    case 'user_email':
      return user.email
    case 'user_upn':
      return String(user.attributes.upn ?? user.email)
    default:
      return hash('sha256', user.uuid)
  }
}

if (import.meta.main) {
  const salt = randomBytes(16)
  const digest = await derive((await text(process.stdin)).replace(/\n$/, ''), salt, 32, cost)
  console.log(`${salt.toString('base64url')}.${digest.toString('base64url')}`)
}
