import { type ApplyQueue, type Backend, openBackend } from '../../src/queue/backend.ts'
import { atEnd } from './at-end.ts'

/** Where a queue lives: in Redis, or else in the database. */
export type Store = { readonly redisUrl: string | null; readonly databaseUrl: string }

/** Opened as API and worker do it, and not checked yet. Closed at the end of the file. */
export async function backendOn(store: Store): Promise<Backend> {
  const backend = await openBackend(store)
  atEnd(() => backend.close())
  return backend
}

/** The queue as API and worker open it. Closed at the end of the file. */
export async function queueOn(store: Store): Promise<{ backend: Backend; queue: ApplyQueue }> {
  const backend = await backendOn(store)
  await backend.check()
  const queue = await backend.openQueue()
  atEnd(() => queue.close())
  return { backend, queue }
}
