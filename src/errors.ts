/**
 * Errors as facts. A `Problem` has a code of a closed catalogue. `http/problems.ts` is the one place that turns it into
 * a status and a body. Nothing here depends on Fastify or on Prisma.
 */

import type { ErrorCode } from './error-codes.ts'
import type { Permission } from './permissions.ts'

/** Every `code` of an answer, with its HTTP status. */
export const catalogue = {
  accepted: 202,
  outcome_unknown: 202,
  invalid: 400,
  invalid_json: 400,
  invalid_http: 400,
  not_authenticated: 401,
  permission_denied: 403,
  not_found: 404,
  invalid_page: 404,
  method_not_allowed: 405,
  too_slow: 408,
  conflict: 409,
  cancelled_by_user: 409,
  key_gone: 410,
  route_gone: 410,
  precondition_failed: 412,
  too_large: 413,
  unsupported_media_type: 415,
  idempotency_key_reused: 422,
  too_many_requests: 429,
  headers_too_large: 431,
  server_error: 500,
  cancelled: 503,
  unavailable: 503,
} as const

export type ProblemCode = keyof typeof catalogue

/** A field's place in a body or document: `['app', 'slug']`, `['provider', 'redirect_uris', 0, 'url']`. */
export type FieldPath = readonly (string | number)[]

/** Field -> messages; nested objects nest, list items are keyed by their index. */
export type FieldErrors = { [field: string]: string[] | FieldErrors }

/**
 * The part of a request that a path belongs to, where the path does not say it. The first three are parts of a blueprint's entry,
 * whose paths are `['entries', 3, field]` for all of them. The default is the body.
 */
export type Where = 'entry' | 'identifiers' | 'attrs' | 'header' | 'parameter'

/** An error of a field. `document/places.ts` adds `place` for a document. */
export type FieldError = {
  readonly path: FieldPath
  readonly code: ErrorCode
  readonly message: string
  readonly where?: Where | undefined
  readonly place?: Place
}

/** Where an error stands in the document that was sent. */
export type Place = {
  readonly pointer: FieldPath
  /** The `id` of the entry. */
  readonly entry?: string
  /** The line, from 1; YAML only. */
  readonly line?: number
  readonly column?: number
  /** The line, shortened, with the values of secret fields masked. Absent for an error of a secret field. */
  readonly source?: string
}

/** An error as answers list it. `pointer` is a JSON pointer (RFC 6901) into the body that was sent; of a run, into its document. */
export type ErrorDetail = {
  readonly code: ErrorCode
  readonly message: string
  readonly pointer?: string
  /** The header or parameter with the error, which has no `pointer`. */
  readonly header?: string
  readonly parameter?: string
} & Omit<Place, 'pointer'>

export function detailOf({ code, message, path, where, place }: FieldError): ErrorDetail {
  if (where === 'header' || where === 'parameter') return { code, message, [where]: path.join('.') }
  const { pointer = path, ...rest } = place ?? {}
  return { code, message, pointer: toPointer(pointer), ...rest }
}

/** Names of fields come from the caller: a longer pointer ends at the last field that fits. */
const maxPointer = 2_000

function toPointer(path: FieldPath): string {
  let pointer = ''
  for (const part of path) {
    const next = `${pointer}/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (next.length > maxPointer) return pointer
    pointer = next
  }
  return pointer
}

type Facts = { readonly cause?: unknown } & Partial<
  Pick<Problem, 'fields' | 'errors' | 'retryAfterS' | 'run' | 'missing' | 'reason'>
>

export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  /** The errors by field, for `invalid`. */
  readonly fields: FieldErrors | undefined
  /** The same errors one by one; those of entries for another refusal of a document. */
  readonly errors: readonly FieldError[] | undefined
  /** Set for 202, 429 and 503. */
  readonly retryAfterS: number | undefined
  /** The path of the run that will have the outcome; set for 202. */
  readonly run: string | undefined
  /** The permissions of which the caller needs one, for the records of operators. */
  readonly missing: readonly Permission[] = []
  /** What operators see in place of the detail. */
  readonly reason: string | undefined

  constructor(code: ProblemCode, detail: string, { cause, ...facts }: Facts = {}) {
    super(detail, cause === undefined ? undefined : { cause })
    this.code = code
    Object.assign(this, facts)
  }

  /** Returns the same Problem with more details of its errors. */
  withErrors(errors: readonly FieldError[]): Problem {
    const { code, message, fields, cause } = this
    return new Problem(code, message, { fields, errors, cause })
  }
}

/** One answer lists at most this many errors; the rest are counted. */
export const maxErrors = 100

/** A message, or a function that makes it only when it is listed: to find the name that was probably meant takes long. */
export type Message = string | (() => string)

export type ErrorSink = { add(path: FieldPath, code: ErrorCode, message: Message): void }

/** Collects every error of an input, so that one answer lists them all. The first hundred are kept, the rest counted. */
export class ErrorList implements ErrorSink {
  readonly list: FieldError[] = []
  #unlisted = 0
  readonly #seen = new Set<string>()

  /** The same list, for errors of one part of the request. */
  of(where: Where): ErrorSink {
    return { add: (path, code, message) => this.add(path, code, message, where) }
  }

  add(path: FieldPath, code: ErrorCode, message: Message, where?: Where): void {
    // An error is not compared with the others: an input can have ten thousand.
    if (this.list.length >= maxErrors) {
      this.#unlisted += 1
      return
    }
    const text = typeof message === 'string' ? message : message()
    const error = JSON.stringify([path.map(String), text])
    if (this.#seen.has(error)) return
    this.#seen.add(error)
    this.list.push({ path, code, message: text, where })
  }

  /** Replaces all errors of a field by this one. */
  instead(path: FieldPath, code: ErrorCode, message: string): void {
    const place = JSON.stringify(path.map(String))
    const others = this.list.filter((error) => JSON.stringify(error.path.map(String)) !== place)
    this.list.splice(0, this.list.length, ...others)
    this.add(path, code, message)
  }

  get any(): boolean {
    return this.list.length > 0
  }

  tree(): FieldErrors {
    const root: FieldErrors = Object.create(null)
    for (const { path, message } of this.list) place(root, path, message)
    if (this.unlisted !== undefined) place(root, [], this.unlisted)
    return root
  }

  /** The sentence about the errors that are only counted; undefined when all are listed. */
  get unlisted(): string | undefined {
    return this.#unlisted > 0 ? `${this.#unlisted} more errors are not listed.` : undefined
  }

  without(code: ErrorCode): this {
    const others = this.list.filter((error) => error.code !== code)
    this.list.splice(0, this.list.length, ...others)
    return this
  }

  include(others: Iterable<ErrorList>): this {
    for (const other of others) {
      for (const { path, code, message, where } of other.list) this.add(path, code, message, where)
      this.#unlisted += other.#unlisted
    }
    return this
  }

  problem(detail = 'The request is not valid.'): Problem {
    return new Problem('invalid', detail, { fields: this.tree(), errors: this.list })
  }

  /** @throws {Problem} `invalid`, with every error of the list */
  throwIfAny(): void {
    if (this.any) throw this.problem('The input is not valid.')
  }
}

/** Puts an error of a whole object under `non_field_errors`, at the top and in nested objects. */
function place(node: FieldErrors, path: FieldPath, message: string): void {
  const [first, ...rest] = path
  const field = first === undefined ? 'non_field_errors' : String(first)
  const there = node[field]
  if (rest.length === 0 && (there === undefined || Array.isArray(there))) {
    node[field] = [...(there ?? []), message]
    return
  }
  // The field has errors as a whole and inside: the former move to its `non_field_errors`.
  const inner: FieldErrors = Array.isArray(there)
    ? Object.assign(Object.create(null), { non_field_errors: there })
    : (there ?? Object.create(null))
  node[field] = inner
  place(inner, rest, message)
}
