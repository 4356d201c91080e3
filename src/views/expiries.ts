import { setImmediate } from 'node:timers/promises'
import type { Db } from '../db/client.ts'
import { endOfCertificate } from '../models/pem.ts'
import { type Actor, allows, mayNameUser } from '../permissions.ts'

/**
 * @property token the next end of a token that authenticates @property certificate that of a certificate which a provider uses;
 * it may have passed
 */
export type Expiries = { readonly token: Date | null; readonly certificate: Date | null }

/** The time at which the next token and the first certificate expire; null when none does. */
export async function readExpiries(db: Db): Promise<Expiries> {
  const { _min } = await db.token.aggregate({
    _min: { expires: true },
    where: { intent: 'api', expiring: true, expires: { gt: new Date() }, user: { isActive: true } },
  })
  return { token: _min.expires, certificate: (await certificatesByEnd(db))[0]?.expires ?? null }
}

/** The most certificates, and those that are read without a pause: each takes a tenth of a millisecond. */
const maxCertificates = 10_000
const atOnce = 200

/** The certificates that a provider uses, the one that ends first before the others. */
async function certificatesByEnd(db: Db): Promise<Expiring[]> {
  const rows = await db.certificateKeyPair.findMany({
    select: { name: true, certificateData: true },
    where: { referencedBy: { some: {} } },
    take: maxCertificates,
  })
  const found: Expiring[] = []
  for (const [index, { name, certificateData }] of rows.entries()) {
    if (index % atOnce === 0) await setImmediate()
    const expires = endOfCertificate(certificateData)
    if (expires !== undefined) found.push({ name, expires, user: null })
  }
  return found.sort((one, other) => one.expires.getTime() - other.expires.getTime())
}

/** The days that the pages of operators look ahead. */
export const expiresWithinDays = 14

const soon = () => new Date(Date.now() + expiresWithinDays * 86_400_000)

const most = 100

/** @property user null for a certificate, and for callers who may not see it */
export type Expiring = {
  readonly name: string
  readonly expires: Date
  readonly user: string | null
  readonly description?: string
}

/** The days that an expired token of a pipeline is shown: it may be the cause of a failure now. */
const expiredWithinDays = 7

/** The most expired tokens: they do not take the place of those that expire next. */
const mostExpired = 10

/** The access tokens that the caller sees, of users who are active. */
const tokensSeen = (actor: Actor) => ({
  ...({ intent: 'api', user: { isActive: true } } as const),
  ...(!allows(actor, 'view_token') && { userPk: actor.pk ?? -1 }),
})

/** The number of access tokens that expire later, or never. */
export const tokensOfLater = (db: Db, actor: Actor): Promise<number> =>
  db.token.count({
    where: { ...tokensSeen(actor), OR: [{ expiring: false }, { expires: { gt: soon() } }] },
  })

/** Access tokens that expired lately, and those that expire soon, the first one first. */
export async function expiringTokens(db: Db, actor: Actor): Promise<Expiring[]> {
  const now = new Date()
  const lately = new Date(now.getTime() - expiredWithinDays * 86_400_000)
  const between = (expires: { gt: Date; lte: Date }, order: 'asc' | 'desc', take: number) =>
    db.token.findMany({
      where: { ...tokensSeen(actor), expiring: true, expires },
      include: { user: { select: { username: true } } },
      orderBy: { expires: order },
      take,
    })
  const [expired, next] = await Promise.all([
    between({ gt: lately, lte: now }, 'desc', mostExpired),
    between({ gt: now, lte: soon() }, 'asc', most),
  ])
  return [...expired.reverse(), ...next].flatMap(({ identifier: name, description, expires, userPk, user }) =>
    expires === null ? [] : [{ name, description, expires, user: mayNameUser(actor, userPk) ? user.username : null }],
  )
}

/** Certificates of providers that expire soon, or have expired, the first one first. */
export async function expiringCertificates(db: Db): Promise<Expiring[]> {
  const until = soon()
  return (await certificatesByEnd(db)).filter(({ expires }) => expires < until).slice(0, most)
}
