import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Outcome, Task } from './sandbox.ts'
import type { User } from './users.ts'

export type Mapping = {
  readonly name: string
  /** The scope by which clients ask for its claims; empty: they always get them. */
  readonly scope_name: string
  /** Null: this server may not read it. */
  readonly expression: string | null
}

/** A loop in native code of the sandbox hears no deadline: its thread is ended. */
const longestMs = 500
const mostCharacters = 16_000
const memory = { maxOldGenerationSizeMb: 64 }

/** Claims that the server itself sets: no expression may. */
const own =
  'iss sub aud exp nbf iat jti nonce auth_time acr amr azp sid at_hash c_hash s_hash events _claim_names _claim_sources'.split(
    ' ',
  )

let thread: Promise<Worker> | undefined
let last: Promise<unknown> = Promise.resolve()

async function startThread(): Promise<Worker> {
  const worker = new Worker(new URL('sandbox.ts', import.meta.url), { env: {}, resourceLimits: memory })
  worker.unref()
  worker.once('error', () => {
    thread = undefined
  })
  await once(worker, 'message')
  return worker
}

async function evaluate(task: Task): Promise<Outcome> {
  thread ??= startThread()
  try {
    const worker = await thread
    worker.postMessage(task)
    const [outcome] = (await once(worker, 'message', { signal: AbortSignal.timeout(longestMs) })) as [Outcome]
    return outcome
  } catch {
    await (await thread?.catch(() => undefined))?.terminate()
    thread = undefined
    return { error: `It needs more than ${longestMs} ms, or too much memory.` }
  }
}

/** One after the other: the thread has one. */
function inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
  const turn = last.then(work)
  last = turn.catch(() => undefined)
  return turn
}

/** The claims of a user for the scopes that were granted. An expression that fails gives none. */
export async function claimsOf(
  user: User,
  provider: object,
  mappings: readonly Mapping[],
  scopes: readonly string[],
): Promise<Record<string, unknown>> {
  const claims: Record<string, unknown> = {}
  for (const { name, scope_name, expression } of mappings) {
    if (scope_name !== '' && !scopes.includes(scope_name)) continue
    const outcome =
      expression === null
        ? { error: 'This server lacks view_propertymapping.' }
        : await inTurn(() => evaluate({ expression, user, provider }))
    if ('claims' in outcome && JSON.stringify(outcome.claims).length <= mostCharacters)
      Object.assign(claims, outcome.claims)
    else
      console.error(
        `mapping ${JSON.stringify(name)}: ${'error' in outcome ? outcome.error : 'Its claims are too large.'}`,
      )
  }
  for (const name of own) delete claims[name]
  return claims
}
