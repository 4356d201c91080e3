import { parentPort } from 'node:worker_threads'
import { getQuickJS, shouldInterruptAfterDeadline } from 'quickjs-emscripten'

/** The thread that runs expressions. They see `user` and `provider`, and nothing of this machine (claims.ts has the time limit). */

const quickjs = await getQuickJS()

export type Task = { readonly expression: string; readonly user: object; readonly provider: object }
export type Outcome = { readonly claims: Record<string, unknown> } | { readonly error: string }

function run({ expression, user, provider }: Task): Outcome {
  const given = [expression, user, provider].map((each) => JSON.stringify(each))
  try {
    const text: unknown = quickjs.evalCode(
      `((body, user, provider) => JSON.stringify(new Function('user', 'provider', body)(user, provider)))(${given})`,
      {
        shouldInterrupt: shouldInterruptAfterDeadline(Date.now() + 50),
        memoryLimitBytes: 8_000_000,
        maxStackSizeBytes: 250_000,
      },
    )
    const claims: unknown = JSON.parse(String(text))
    if (typeof claims !== 'object' || claims === null || Array.isArray(claims))
      return { error: 'It returned no object.' }
    return { claims: claims as Record<string, unknown> }
  } catch (error) {
    return { error: error instanceof Error ? error.message : JSON.stringify(error) }
  }
}

parentPort?.on('message', (task: Task) => parentPort?.postMessage(run(task)))
parentPort?.postMessage('ready')
