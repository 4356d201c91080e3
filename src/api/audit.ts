import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import { auditList } from '../lists/audit.ts'
import { list } from '../lists/list.ts'

/** GET /api/v3/core/audit/ */
export const auditRoutes = (app: Api, db: Db): void => list(app, db, auditList)
