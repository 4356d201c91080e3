import type { Db } from '../../db/client.ts'
import { applicationList } from '../../lists/applications.ts'
import { findPage, type Request } from '../../lists/list.ts'
import type { Registry } from '../../models/registry.ts'
import type { Actor } from '../../permissions.ts'
import { applicationView } from '../../views/application.ts'
import { readUidOf } from '../../views/uid.ts'

/** The pages of operators count no further. */
export const mostCounted = 5_000

export type ApplicationRow = Awaited<ReturnType<typeof readApplications>>['rows'][number]

/** Reads a page of the applications that the caller sees. @returns `isCut`: there are more than are counted */
export async function readApplications(db: Db, registry: Pick<Registry, 'kinds'>, actor: Actor, request: Request) {
  const { keys, count, isExact } = await findPage(db, applicationList(registry), actor, { mostCounted, ...request })
  const view = applicationView(registry.kinds)
  const reading = { uidOf: await readUidOf(db), related: true, actor }
  const rows = keys.length === 0 ? [] : (await Array.fromAsync(view.read(db, keys.map(String), reading))).flat()
  return { count, rows, isCut: !isExact }
}
