import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import { auditList } from '../lists/audit.ts'
import { list } from '../lists/list.ts'
import type { Registry } from '../models/registry.ts'

/** GET /api/v3/core/audit/ */
export const auditRoutes = (app: Api, db: Db, registry: Registry): void => list(app, db, auditList(registry))
