import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { withExample } from '../example.ts'
import type { Registry } from '../models/registry.ts'
import { application, applicationInclude, toApplication } from './application.ts'
import { limitRepeated } from './repeated.ts'
import { readUsers, shownBeside, type User, userView } from './user.ts'
import { inOrder, type Reading, type View } from './view.ts'

/** The permissions that a user gave an application, to act on the user's behalf. */

export const userConsent = z
  .object({
    pk: withExample(z.int(), 5),
    expires: z.iso.datetime().nullable(),
    expiring: z.boolean(),
    user: userView.schema.describe(shownBeside),
    application,
    permissions: withExample(z.string(), 'openid profile email'),
  })
  .meta({ id: 'UserConsent' })

/** Consents. Users and applications are read once each: a page shows the same ones again and again. */
export const userConsentView = (kinds: Registry['kinds']) =>
  ({
    model: 'UserConsent',
    schema: userConsent,
    async *read(tx: Tx, keys: readonly number[], reading: Reading) {
      const rows = await tx.userConsent.findMany({ where: { pk: { in: [...keys] } } })
      const consents = inOrder(keys, rows, ({ pk }) => pk)
      const owners = consents.map(({ userPk }) => userPk)
      const users = await readUsers(tx, owners, reading)
      await limitRepeatedUsers(consents.flatMap(({ userPk }) => users.get(userPk) ?? []))
      const apps = await tx.application.findMany({
        where: { pk: { in: [...new Set(consents.map(({ applicationPk }) => applicationPk))] } },
        include: applicationInclude,
      })
      const appOf = new Map(apps.map((app) => [app.pk, app]))
      yield consents.flatMap((row) => {
        const [user, app] = [users.get(row.userPk), appOf.get(row.applicationPk)]
        if (user === undefined || app === undefined) return []
        return {
          pk: row.pk,
          expires: row.expires?.toISOString() ?? null,
          expiring: row.expiring,
          user,
          application: toApplication(app, { kinds, user, actor: reading.actor }),
          permissions: row.permissions,
        }
      })
    },
  }) satisfies View<'UserConsent'>

/** @param users the users of the consents, each as often as it is repeated */
function limitRepeatedUsers(users: readonly User[]): Promise<void> {
  const lengths = new Map<object, number>()
  const lengthOf = ({ attributes }: { attributes: object }) =>
    lengths.getOrInsertComputed(attributes, () => JSON.stringify(attributes).length)
  const objectsOf = (user: User) => [user, ...(user.groups_obj ?? [])]
  const times = users.reduce((sum, { groups }) => sum + 1 + groups.length, 0)
  return limitRepeated(times, () =>
    users.reduce((sum, user) => objectsOf(user).reduce((total, each) => total + lengthOf(each), sum), 0),
  )
}
