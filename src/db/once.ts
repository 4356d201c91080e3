import type { Db } from './client.ts'

/** Reads constant data once for each database. After a failure, the next caller reads again. */
export function oncePerDb<Result>(read: (db: Db) => Promise<Result>): (db: Db) => Promise<Result> {
  const known = new WeakMap<Db, Promise<Result>>()
  return (db) => {
    const result = known.get(db) ?? read(db)
    known.set(db, result)
    result.catch(() => known.delete(db))
    return result
  }
}
