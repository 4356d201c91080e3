import { decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { z } from 'zod'
import { type AuditEntry, auditRow } from '../apply/audit.ts'
import { attempt } from '../attempt.ts'
import { type Db, type Tx, transaction } from '../db/client.ts'
import type { TrustedIssuer } from '../db/generated/client.ts'
import { query } from '../db/raw.ts'
import { Problem } from '../errors.ts'
import { sha256, uuid7 } from '../ids.ts'
import { permissionNames } from '../models/registry.ts'
import { ceilingOf } from '../models/token.ts'
import { type Rule, ruleFor, rulesOf } from '../models/trusted-issuer.ts'
import { isOfStack, stacksOf, system } from '../permissions.ts'
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
  readonly keysOf: (issuer: Pick<TrustedIssuer, 'issuer' | 'jwks'>) => JWTVerifyGetKey
}

/** Seconds that an access token of a job is valid. A program gets another one while the job runs. */
export const lifetimeS = 900

/** The most access tokens of jobs that one user has at the same time. */
const mostAtOnce = 1_000

/** Identity tokens that are older have been lying about. */
const longestAge = '24h'

type Issuer = Omit<TrustedIssuer, 'rules'>

/** @property rule as it is stored */
type Accepted = { readonly issuer: Issuer; readonly rule: Rule; readonly claims: JWTPayload }

/** Why an identity token gets no access token, for operators. `issuer`: the signature was verified as one of its. */
class Unaccepted extends Error {
  override readonly name = 'Unaccepted'
  readonly issuer: Issuer | undefined
  constructor(reason: string, issuer?: Issuer) {
    super(reason)
    this.issuer = issuer
  }
}

/** Jobs of any project in the world have signed tokens of a public CI system: a flood of them is a sample in the audit. */
const refusalsEveryMs = 1_000

/** @param jwt the identity token @returns the access token */
export type ExchangeToken = (jwt: string, requestId: string) => Promise<string>

/**
 * @returns a function that throws a Problem: `not_authenticated` with one text for all reasons, `unavailable` when the keys of the
 *   issuer cannot be fetched, and `too_many_requests`
 */
export function openExchange(on: Exchange): ExchangeToken {
  const { db, engine } = on
  const refusedAt = new Map<string, number>()
  return async (jwt, requestId) => {
    try {
      const accepted = await accept(on, jwt)
      return await transaction(db, (tx) => give(tx, engine, accepted, jwt, requestId))
    } catch (error) {
      if (!(error instanceof Unaccepted)) throw error
      const { message: reason, issuer } = error
      const at = performance.now()
      // What is not signed, anyone can send: it is on the page of refusals alone.
      if (issuer !== undefined && at - (refusedAt.get(issuer.pk) ?? -refusalsEveryMs) >= refusalsEveryMs) {
        refusedAt.set(issuer.pk, at)
        await db.auditRow.create({ data: auditOf(system, 'refuse_exchange', issuer, reason, requestId) })
      }
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

const clockRow = z.object({ now: z.date() })

/**
 * Finds the first rule, by the names of issuer and rule, that takes the token.
 *
 * @throws {Unaccepted}
 * @throws {Problem} `unavailable` when keys are missing to say so
 */
async function accept({ db, keysOf }: Exchange, jwt: string): Promise<Accepted> {
  const named = issuerIn(jwt)
  const search = { where: { issuer: named }, orderBy: { name: 'asc' }, take: 100, omit: { rules: true } } as const
  const issuers = await db.trustedIssuer.findMany(search)
  const [{ now } = { now: new Date() }] = await query(db, clockRow, { text: 'SELECT now()', values: [] })
  let refusal = new Unaccepted(`No trusted issuer is ${JSON.stringify(named)}.`)
  let away: Problem | undefined
  for (const issuer of issuers) {
    const found = await verify(issuer, keysOf, jwt, now)
    if (found instanceof Problem) away = found
    else if (found instanceof Unaccepted) refusal = refusal.issuer === undefined ? found : refusal
    else {
      const { rules } = (await db.trustedIssuer.findUnique({ where: { pk: issuer.pk }, select: { rules: true } })) ?? {}
      const name = ruleFor(rulesOf(rules), found)?.name
      const rule = name === undefined ? undefined : (rules as Rule[]).find((each) => each.name === name)
      if (rule !== undefined) return { issuer, rule, claims: found }
      const reason = `No rule of trusted issuer ${JSON.stringify(issuer.name)} fits ${whatIs(found)}.`
      refusal = new Unaccepted(reason, issuer)
    }
  }
  throw away ?? refusal
}

/** @throws {Unaccepted} for a text that is no token, or one that names no issuer */
function issuerIn(jwt: string): string {
  const iss = attempt(() => decodeJwt(jwt).iss)
  if (typeof iss === 'string') return cut(iss, 2_000)
  throw new Unaccepted('It is not a JSON Web Token with an issuer.')
}

/** The claims, or why there are none: a Problem when there are no keys to verify them with. */
type Verified = JWTPayload | Unaccepted | Problem

async function verify(issuer: Issuer, keysOf: Exchange['keysOf'], jwt: string, now: Date): Promise<Verified> {
  const { audience, algorithms, clockSkew } = issuer
  const name = `Trusted issuer ${JSON.stringify(issuer.name)}`
  try {
    const { payload } = await jwtVerify(jwt, keysOf(issuer), {
      ...{ issuer: issuer.issuer, audience, algorithms, clockTolerance: clockSkew, maxTokenAge: longestAge },
      ...{ currentDate: now, requiredClaims: ['sub', 'exp'] },
    })
    return payload
  } catch (error) {
    // A key may be of no use: jose says so by a TypeError.
    if (!(error instanceof errors.JOSEError || error instanceof TypeError)) throw error
    const reason = `${name}: ${error.message.replace(/\.$/, '')}.`
    if (error instanceof errors.JOSEError && ofKeys.includes(error.code)) {
      const detail = 'Identity tokens cannot be verified now. Try again.'
      return new Problem('unavailable', detail, { reason, retryAfterS: 5, cause: error })
    }
    const isSigned = error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired
    return isSigned ? new Unaccepted(`${reason} It is ${whatIs(error.payload)}.`, issuer) : new Unaccepted(reason)
  }
}

/** Codes of errors of the key set. */
const ofKeys = ['ERR_JWKS_INVALID', 'ERR_JWK_INVALID', 'ERR_JWKS_TIMEOUT']

/** PostgreSQL takes no NUL characters, and a token may hold any text. */
const cut = (text: string, most: number = longestClaim) => text.slice(0, most).toWellFormed().replaceAll('\0', '\ufffd')
const textOf = (claim: unknown): string | null =>
  ['string', 'number'].includes(typeof claim) && claim !== '' ? cut(String(claim)) : null

/** The first of these claims that is there. */
const first = (claims: JWTPayload, ...names: readonly string[]): string | null =>
  names.map((name) => textOf(claims[name])).find((claim) => claim !== null) ?? null

const whatIs = (claims: JWTPayload): string =>
  `${JSON.stringify(textOf(claims.sub) ?? '')}, job ${JSON.stringify(jobOf(claims))}, for ${JSON.stringify([claims.aud].flat().map((each) => cut(String(each))))}`

const jobOf = (claims: JWTPayload) => first(claims, 'job_id', 'run_id', `${circle}job-id`, 'jti')

function pipelineOf({ issuer, rule, claims }: Accepted): Pipeline {
  const repository = first(claims, 'repository', 'project_path', `${circle}vcs-origin`)
  return {
    issuer: issuer.name,
    rule: rule.name,
    subject: textOf(claims.sub) ?? '',
    repository,
    ref: first(claims, 'ref', 'build_branch', `${circle}vcs-ref`),
    commit: first(claims, 'sha', 'build_commit'),
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
  const [holder] = await query(tx, holderRow, { text: holderText, values: [issuer.pk, JSON.stringify(rule)] })
  if (holder === undefined)
    throw new Unaccepted(
      `Rule ${JSON.stringify(rule.name)} of trusted issuer ${JSON.stringify(issuer.name)} is for user ${JSON.stringify(rule.user)}, who is not there or not active; or the rule was changed meanwhile.`,
      issuer,
    )
  const { ceiling: limits, trust, ...user } = holder
  const ceiling = ceilingOf(limits?.filter((right) => !isOfStack(right)) ?? null, rule, {
    all: permissionNames(engine.registry),
    stacks: limits && stacksOf({ ceiling: new Set(limits) }),
  })
  const secret = newSecret('api', engine.keyring)
  const { jti } = claims
  const isShort = typeof jti === 'string' && jti.length <= longestClaim
  const identity = isShort ? cut(jti) : sha256(JSON.stringify(jti ?? jwt)).toString('hex')
  const [written] = await query(tx, writtenRow, {
    text: writtenText,
    values: [
      ...[uuid7(), sha256(secret), user.pk, issuer.pk, JSON.stringify(rule), ceiling && JSON.stringify(ceiling)],
      ...[JSON.stringify(pipelineOf(accepted)), identity, trust, lifetimeS, mostAtOnce],
    ],
  })
  if (written === undefined) {
    const detail = `The user of this job has ${mostAtOnce} access tokens of jobs, the most. Try again when one has expired.`
    throw new Problem('too_many_requests', detail, { retryAfterS: 60 })
  }
  const action = written.isReplay ? 'exchange_again' : 'exchange'
  const what = `Rule ${JSON.stringify(rule.name)} for ${whatIs(claims)}, identity token ${identity}`
  await tx.auditRow.create({ data: auditOf(user, action, issuer, what, requestId) })
  return secret
}

const holderRow = z.object({
  ...{ pk: z.int(), username: z.string(), trust: z.string() },
  ceiling: z.array(z.string()).nullable(),
})

/** The user's row is locked: two exchanges of one identity token are one after the other. */
const holderText = `SELECT u.pk, u.username, i.ceiling, trust_of(i) AS trust
  FROM trusted_issuers i JOIN users u ON u.username = $2::jsonb->>'user' AND u.is_active
  WHERE i.pk = $1::uuid AND EXISTS (SELECT FROM jsonb_array_elements(i.rules) r WHERE r = $2::jsonb)
  FOR NO KEY UPDATE OF u FOR KEY SHARE OF i`

const writtenRow = z.object({ isReplay: z.boolean() })

/** The clock of the database counts. The subquery does not see the new row. */
const writtenText = `INSERT INTO exchanged_tokens (pk, key_hash, user_pk, issuer_pk, rule, ceiling, pipeline, identity, trust, expires)
  SELECT $1::uuid, $2::bytea, $3::integer, $4::uuid, $5::jsonb, $6::jsonb, $7::jsonb, $8::text, $9::text, now() + make_interval(secs => $10)
  WHERE (SELECT count(*) FROM exchanged_tokens WHERE user_pk = $3::integer AND expires > now()) < $11::integer
  RETURNING EXISTS (SELECT FROM exchanged_tokens e WHERE e.issuer_pk = $4::uuid AND e.identity = $8::text) AS "isReplay"`
