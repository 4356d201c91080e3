/**
 * Errors as facts. A `Problem` says what went wrong in one word of a closed catalogue; `http/problems.ts` is the one
 * place that turns it into a status and a body. Nothing here knows HTTP's library or the database's.
 */

/** Every `code` an answer can carry, with the status it is sent under. */
export const catalogue = {
  outcome_unknown: 202,
  invalid: 400,
  invalid_json: 400,
  invalid_http: 400,
  not_supported: 400,
  not_authenticated: 401,
  permission_denied: 403,
  not_found: 404,
  invalid_page: 404,
  method_not_allowed: 405,
  too_slow: 408,
  key_gone: 410,
  precondition_failed: 412,
  too_large: 413,
  unsupported_media_type: 415,
  too_many_requests: 429,
  headers_too_large: 431,
  server_error: 500,
  not_applied: 503,
  unavailable: 503,
} as const

export type ProblemCode = keyof typeof catalogue

/** A member's place in a body or document: `['app', 'slug']`, `['provider', 'redirect_uris', 0, 'url']`. */
export type FieldPath = readonly (string | number)[]

/** Member -> messages; nested objects nest, list items are keyed by their index. */
export type FieldErrors = { [member: string]: string[] | FieldErrors }

export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  /** What was wrong where, for `invalid`. */
  readonly fields: FieldErrors | undefined
  /** Seconds after which another try makes sense, for 429 and 503. */
  readonly retryAfterS: number | undefined

  constructor(
    code: ProblemCode,
    detail: string,
    facts: { fields?: FieldErrors; retryAfterS?: number; cause?: unknown } = {},
  ) {
    super(detail, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.code = code
    this.fields = facts.fields
    this.retryAfterS = facts.retryAfterS
  }
}

/** At most this many faults are named in one answer; the rest are counted. */
const maxFaults = 100

/** Gathers every fault of an input, so that one answer names them all. */
export class Faults {
  readonly list: { path: FieldPath; message: string }[] = []
  // Compared by look-up: an input of ten thousand faults must not take seconds.
  readonly #told = new Set<string>()

  add(path: FieldPath, message: string): void {
    const fault = JSON.stringify([path.map(String), message])
    if (this.#told.has(fault)) return
    this.#told.add(fault)
    this.list.push({ path, message })
  }

  /** Tells this of a member, and nothing else that is known of it by now. */
  instead(path: FieldPath, message: string): void {
    const place = JSON.stringify(path.map(String))
    const others = this.list.filter((fault) => JSON.stringify(fault.path.map(String)) !== place)
    this.list.splice(0, this.list.length, ...others)
    this.add(path, message)
  }

  get any(): boolean {
    return this.list.length > 0
  }

  tree(): FieldErrors {
    const root: FieldErrors = Object.create(null)
    for (const { path, message } of this.list.slice(0, maxFaults)) place(root, path, message)
    const more = this.list.length - maxFaults
    if (more > 0) place(root, [], `${more} more faults are not listed.`)
    return root
  }

  /** Takes over what others gathered. */
  include(others: Iterable<Faults>): this {
    for (const { list } of others) for (const { path, message } of list) this.add(path, message)
    return this
  }

  /** @throws {Problem} `invalid`, naming every fault gathered so far */
  throwIfAny(): void {
    if (this.any) throw new Problem('invalid', 'The input is not valid.', { fields: this.tree() })
  }
}

/** Faults of an object as a whole stand under `non_field_errors`, at the top and in every nested object. */
function place(node: FieldErrors, path: FieldPath, message: string): void {
  const [first, ...rest] = path
  const member = first === undefined ? 'non_field_errors' : String(first)
  const there = node[member]
  if (rest.length === 0 && (there === undefined || Array.isArray(there))) {
    node[member] = [...(there ?? []), message]
    return
  }
  // A member that is wrong both as a whole and inside keeps both: the former moves to its non_field_errors.
  const inner: FieldErrors = Array.isArray(there)
    ? Object.assign(Object.create(null), { non_field_errors: there })
    : (there ?? Object.create(null))
  node[member] = inner
  place(inner, rest, message)
}
