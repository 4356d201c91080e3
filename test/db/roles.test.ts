import { expect, test } from 'vitest'
import { letSeeSessions, prepareLogins, withLogin } from '../../src/db/roles.ts'
import { uuid7 } from '../../src/ids.ts'
import { prepareDatabase } from '../../src/prepare.ts'
import { emptyDatabase, within } from '../support/kit.ts'

test('of several that prepare a database at the same time, all succeed', async () => {
  const url = await emptyDatabase()
  const login = (role: string) => ({ user: `${role}_${uuid7().replaceAll('-', '')}`, password: role })
  const [owner, service] = [login('owner'), login('service')]
  const prepare = async () => {
    await prepareLogins(url, { owner, service })
    await letSeeSessions(url, service.user)
    await prepareDatabase({ ownerUrl: withLogin(url, owner), service, withQueue: true })
  }
  await Promise.all([prepare(), prepare(), prepare(), prepare()])
  const { rows } = await within(withLogin(url, service), (client) =>
    client.query('SELECT count(*)::integer AS users FROM users'),
  )
  expect(rows).toEqual([{ users: 0 }])
})
