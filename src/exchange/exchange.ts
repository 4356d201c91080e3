import { decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { z } from 'zod'
import { type AuditEntry, auditRow } from '../apply/audit.ts'
import { attempt } from '../attempt.ts'
import { retrying } from '../db/backoff.ts'
import { type Db, type Tx, transaction } from '../db/client.ts'
import { isCollision } from '../db/errors.ts'
import { query } from '../db/raw.ts'
import { Problem } from '../errors.ts'
import { forgetOldest } from '../forget-oldest.ts'
import { placeWithinMs, Share } from '../http/shares.ts'
import { sha256, uuid7 } from '../ids.ts'
import { permissionNames } from '../models/registry.ts'
import { ceilingOf } from '../models/token.ts'
import { type Rule, ruleFor, rulesOf } from '../models/trusted-issuer.ts'
import { isOfStack, meet, stacksOf, system } from '../permissions.ts'
import { longestClaim, type Pipeline } from '../pipeline.ts'
import type { Engine } from '../plan/engine.ts'
import { newSecret } from '../token-secret.ts'

/**
 * Gives a job of a CI system an access token for its identity token (RFC 8693), by the rules of trusted issuers
 * (docs/adr/0141-jobs-exchange-their-identity.md).
 */

/** @property keysOf the keys of an issuer, fetched or its own */
export type Exchange = {
  readonly db: Db
  readonly engine: Engine
  readonly keysOf: (issuer: { readonly issuer: string; readonly jwks: unknown }) => JWTVerifyGetKey
}

/** Seconds that an access token of a job is valid. A program gets another one while the job runs. */
export const lifetimeS = 900

/** The most access tokens that are valid at the same time: by one rule, and for one identity token. */
const most = { ofRule: 1_000, ofIdentity: 200 } as const

const refuse = () =>
  new Problem('too_many_requests', 'Too many jobs exchange their tokens now. Try again.', { retryAfterS: 1 })
const places = new Share({ max: 4, waitMs: placeWithinMs, refuse })

/** Few at once end before the time limit of a lock, and leave connections to others. @param who a user; '': before one is known */
async function inTurn<Result>(who: string, work: () => Promise<Result>): Promise<Result> {
  const end = await places.take(who)
  return work().finally(end)
}

/** Identity tokens that are older have been lying about. */
const longestAge = '24h'

const issuerRow = z.object({
  ...{ pk: z.guid(), name: z.string(), issuer: z.string(), audience: z.string(), jwks: z.unknown() },
  ...{ algorithms: z.array(z.string()), clockSkew: z.int(), trust: z.string(), now: z.date() },
})
type Issuer = z.output<typeof issuerRow>

const issuerText = `SELECT pk, name, issuer, audience, jwks, algorithms, clock_skew AS "clockSkew", trust_of(i) AS trust, now()
  FROM trusted_issuers i WHERE issuer = $1`

/** @property rule as it is stored */
type Accepted = { readonly issuer: Issuer; readonly rule: Rule; readonly claims: JWTPayload }

/** Why an identity token gets no access token, for operators. `of`: it is for this service, valid, and of a job of this issuer. */
class Unaccepted extends Error {
  override readonly name = 'Unaccepted'
  readonly of: Pick<Accepted, 'issuer' | 'claims'> | undefined
  constructor(reason: string, of?: Pick<Accepted, 'issuer' | 'claims'>) {
    super(reason)
    this.of = of
  }
}

/** Jobs of any project in the world have tokens of a public CI system: the audit has a sample of each project. */
const refusalsEveryMs = 60_000
/** Projects whose last refusal is known. */
const maxRefused = 1_000

/** @param jwt the identity token @returns the access token */
export type ExchangeToken = (jwt: string, requestId: string) => Promise<string>

/**
 * @returns a function that throws a Problem: `not_authenticated` with one text for all reasons, `unavailable` when the keys of the
 *   issuer cannot be fetched, and `too_many_requests`
 */
export function openExchange(on: Exchange): ExchangeToken {
  const { db, engine } = on
  const refused = new Map<string, number>()
  const isNew = (project: string): boolean => {
    const now = performance.now()
    if (now - (refused.get(project) ?? -refusalsEveryMs) < refusalsEveryMs) return false
    refused.delete(project)
    refused.set(project, now)
    forgetOldest(refused, maxRefused)
    return true
  }
  return async (jwt, requestId) => {
    try {
      const accepted = await accept(on, jwt)
      const giving = () => transaction(db, (tx) => give(tx, engine, accepted, jwt, requestId))
      return await inTurn(accepted.rule.user, () => retrying(giving, { max: 3, stepMs: 5, canRetry: isCollision }))
    } catch (error) {
      if (!(error instanceof Unaccepted)) throw error
      const { message: reason, of } = error
      // What is not signed, or not for this service, is on the page of refusals alone: anyone can send it, again and again.
      if (of !== undefined && isNew(`${of.issuer.pk} ${projectOf(of.claims) ?? textOf(of.claims.sub)}`))
        await db.auditRow.create({ data: auditOf(system, 'refuse_exchange', of.issuer, reason, requestId) })
      const detail = 'This identity token gets no access token. Operators see why at /admin/refusals/.'
      throw new Problem('not_authenticated', detail, { reason })
    }
  }
}

const auditOf = (actor: AuditEntry['actor'], action: string, issuer: Issuer, reason: string, requestId: string) => {
  const [model, done] = ['service_rbac.trustedissuer', 'exchange'] as const
  const changes = [{ model, key: issuer.pk, action: done, fields: [], reason: cut(reason, 1_000) }]
  return auditRow({ actor, action, changes, requestId })
}

/**
 * Finds the first rule by name that takes the token.
 *
 * @throws {Unaccepted}
 * @throws {Problem} `unavailable` when keys are missing to say so
 */
async function accept({ db, keysOf }: Exchange, jwt: string): Promise<Accepted> {
  const named = issuerIn(jwt)
  const [issuer] = await inTurn('', () => query(db, issuerRow, { text: issuerText, values: [named] }))
  if (issuer === undefined) throw new Unaccepted(`No trusted issuer is ${JSON.stringify(named)}.`)
  const claims = await verify(issuer, keysOf, jwt)
  // They are large, and anyone may send a token that is not verified.
  const { pk } = issuer
  const found = await inTurn('', () => db.trustedIssuer.findUnique({ where: { pk }, select: { rules: true } }))
  const { rules } = found ?? {}
  const name = ruleFor(rulesOf(rules), claims)?.name
  const rule = name === undefined ? undefined : (rules as Rule[]).find((each) => each.name === name)
  if (rule !== undefined) return { issuer, rule, claims }
  const reason = `No rule of trusted issuer ${JSON.stringify(issuer.name)} fits ${whatIs(claims)}.`
  throw new Unaccepted(reason, { issuer, claims })
}

/** @throws {Unaccepted} for a text that is no token, or one that names no issuer */
function issuerIn(jwt: string): string {
  const iss = attempt(() => decodeJwt(jwt).iss)
  if (typeof iss === 'string') return cut(iss, 2_000)
  throw new Unaccepted('It is not a JSON Web Token with an issuer.')
}

/** @throws {Unaccepted} @throws {Problem} when there are no keys to verify it with */
async function verify(issuer: Issuer, keysOf: Exchange['keysOf'], jwt: string): Promise<JWTPayload> {
  const { audience, algorithms, clockSkew, now } = issuer
  try {
    const { payload } = await jwtVerify(jwt, keysOf(issuer), {
      ...{ issuer: issuer.issuer, audience, algorithms, clockTolerance: clockSkew, maxTokenAge: longestAge },
      ...{ currentDate: now, requiredClaims: ['sub', 'exp'] },
    })
    return payload
  } catch (error) {
    // A key may be of no use: jose says so by a TypeError.
    if (!(error instanceof errors.JOSEError || error instanceof TypeError)) throw error
    const reason = `Trusted issuer ${JSON.stringify(issuer.name)}: ${error.message.replace(/\.$/, '')}.`
    if (error instanceof errors.JOSEError && ofKeys.includes(error.code)) {
      const detail = 'Identity tokens cannot be verified now. Try again.'
      throw new Problem('unavailable', detail, { reason, retryAfterS: 5, cause: error })
    }
    const isSigned = error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired
    throw new Unaccepted(isSigned ? `${reason} It is ${whatIs(error.payload)}.` : reason)
  }
}

/** Codes of errors of the key set. */
const ofKeys = ['ERR_JWKS_INVALID', 'ERR_JWK_INVALID', 'ERR_JWKS_TIMEOUT']

/** A token may hold any text, and claims are parts of lines. */
const cut = (text: string, length: number = longestClaim) =>
  text
    .slice(0, length)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '\ufffd')
const textOf = (claim: unknown): string | null =>
  ['string', 'number'].includes(typeof claim) && claim !== '' ? cut(String(claim)) : null

/** The first of these claims that is there. */
const first = (claims: JWTPayload, ...names: readonly string[]): string | null =>
  names.map((name) => textOf(claims[name])).find((claim) => claim !== null) ?? null

const whatIs = (claims: JWTPayload): string =>
  `${JSON.stringify(textOf(claims.sub) ?? '')}, job ${JSON.stringify(jobOf(claims))}, for ${JSON.stringify([claims.aud].flat().map(textOf))}`

const jobOf = (claims: JWTPayload) => first(claims, 'job_id', 'run_id', `${circle}job-id`, 'jti')

const projectOf = (claims: JWTPayload) => first(claims, 'repository', 'project_path', `${circle}vcs-origin`)

function pipelineOf({ issuer, rule, claims }: Accepted): Pipeline {
  const repository = projectOf(claims)
  return {
    issuer: issuer.name,
    rule: rule.name,
    subject: textOf(claims.sub) ?? '',
    repository,
    ref: first(claims, 'ref', 'build_branch', `${circle}vcs-ref`),
    commit: first(claims, 'sha', 'build_commit', `${circle}vcs-sha`),
    job: jobOf(claims),
    job_url: urlOf(claims, repository),
    actor: first(claims, 'actor', 'user_login'),
  }
}

const circle = 'oidc.circleci.com/'

/** The page of a job of GitHub, of its enterprise servers, or of GitLab. */
function urlOf({ iss = '', ...claims }: JWTPayload, repository: string | null): string | null {
  const [job, run] = [first(claims, 'job_id'), first(claims, 'run_id')]
  const server = iss
    .replace(/^https:\/\/token\.actions\.githubusercontent\.com.*/, 'https://github.com')
    .replace(/^https:\/\/token\.actions\.([\w-]+\.ghe\.com).*/, 'https://$1')
    .replace(/\/_services\/token$|\/$/, '')
  if (repository === null || (job ?? run) === null) return null
  return run === null ? `${server}/${repository}/-/jobs/${job}` : `${server}/${repository}/actions/runs/${run}`
}

/** Writes the access token, for a user who is active, and what its rule gives. @throws {Unaccepted} */
async function give(tx: Tx, engine: Engine, accepted: Accepted, jwt: string, requestId: string): Promise<string> {
  const { issuer, rule, claims } = accepted
  const { trust } = issuer
  const [holder] = await query(tx, holderRow, { text: holderText, values: [issuer.pk, JSON.stringify(rule), trust] })
  if (holder === undefined) {
    const whose = `Rule ${JSON.stringify(rule.name)} of trusted issuer ${JSON.stringify(issuer.name)} is for user ${JSON.stringify(rule.user)}`
    const reason = `${whose}, who is not there or not active; or the issuer was changed meanwhile.`
    throw new Unaccepted(reason, accepted)
  }
  const { ceilings, ...user } = holder
  const authors = ceilings.map((rights) => ({ ceiling: new Set(rights) }))
  const limit = authors
    .map(({ ceiling }) => new Set([...ceiling].filter((right) => !isOfStack(right))))
    .reduce<Set<string> | null>((one, other) => (one === null ? other : meet(one, other)), null)
  const ceiling = ceilingOf(limit && [...limit].sort(), rule, {
    all: permissionNames(engine.registry),
    stacks: stacksOf({ authors }),
  })
  const secret = newSecret('api', engine.keyring)
  const { jti } = claims
  const isShort = typeof jti === 'string' && jti.length <= longestClaim
  // A signature has several forms.
  const identity = isShort ? cut(jti) : sha256(JSON.stringify(jti ?? jwt.split('.')[1])).toString('hex')
  const [written] = await query(tx, writtenRow, {
    text: writtenText,
    values: [
      ...[uuid7(), sha256(secret), user.pk, issuer.pk, JSON.stringify(rule), ceiling && JSON.stringify(ceiling)],
      ...[JSON.stringify(pipelineOf(accepted)), identity, trust, lifetimeS, most.ofRule, most.ofIdentity],
    ],
  })
  if (written === undefined) {
    const detail = `The jobs of this rule have ${most.ofRule} access tokens, or this identity token has ${most.ofIdentity}: the most. Keep one while the job runs. Try again when one has expired.`
    throw new Problem('too_many_requests', detail, { retryAfterS: 60 })
  }
  const action = written.isReplay ? 'exchange_again' : 'exchange'
  const what = `Rule ${JSON.stringify(rule.name)} for ${whatIs(claims)}, identity token ${identity}`
  await tx.auditRow.create({ data: auditOf(user, action, issuer, what, requestId) })
  return secret
}

const holderRow = z.object({ pk: z.int(), username: z.string(), ceilings: z.array(z.array(z.string())) })

/**
 * Two exchanges of one identity token are one after the other: the user's row is locked. A change of the issuer waits for those in
 * progress, to end their tokens, too: its row is shared. A transaction that changes the issuer first and then the user may deadlock
 * with an exchange: PostgreSQL ends one after a second, and it is tried again.
 */
const holderText = `SELECT u.pk, u.username, i.ceilings
  FROM trusted_issuers i JOIN users u ON u.username = $2::jsonb->>'user' AND u.is_active
  WHERE i.pk = $1::uuid AND trust_of(i) = $3 AND EXISTS (SELECT FROM jsonb_array_elements(i.rules) r WHERE r = $2::jsonb)
  FOR NO KEY UPDATE OF u FOR SHARE OF i`

const writtenRow = z.object({ isReplay: z.boolean() })

/** The clock of the database counts. The subquery does not see the new row. */
const writtenText = `INSERT INTO exchanged_tokens (pk, key_hash, user_pk, issuer_pk, rule, ceiling, pipeline, identity, trust, expires)
  SELECT $1::uuid, $2::bytea, $3::integer, $4::uuid, $5::jsonb, $6::jsonb, $7::jsonb, $8::text, $9::text, now() + make_interval(secs => $10)
  FROM (SELECT count(*) AS of_rule, count(*) FILTER (WHERE issuer_pk = $4::uuid AND identity = $8::text) AS of_identity
    FROM exchanged_tokens WHERE user_pk = $3::integer AND rule = $5::jsonb AND expires > now()) valid
  WHERE of_rule < $11::integer AND of_identity < $12::integer
  RETURNING EXISTS (SELECT FROM exchanged_tokens e WHERE e.issuer_pk = $4::uuid AND e.identity = $8::text) AS "isReplay"`
