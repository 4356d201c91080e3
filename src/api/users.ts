import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import { list } from '../lists/list.ts'
import { userList } from '../lists/users.ts'

/** GET /api/v3/core/users/ */
export const userRoutes = (app: Api, db: Db): void => list(app, db, userList)
