import type pg from 'pg'
import { sha256, uuid7 } from '../src/ids.ts'
import { within } from '../test/support/template.ts'

/** What a ledger that was written past the service lacks: runs whose documents can be opened, and a reader with few rights. */

/** @property run changed an application @property plan of rolling back to it @property set of 1 000 entries, half of them changed */
export type RealRuns = { readonly run: string; readonly plan: string; readonly set: string }

const path = '/api/v3/blueprints/'

export async function submitReal(at: string, token: string): Promise<RealRuns> {
  const submit = async (method: string, where: string, body?: object): Promise<string> => {
    const answer = await fetch(`${at}${where}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const run = answer.headers.get('content-location')?.split('/').at(-2)
    if (!answer.ok || run === undefined) throw new Error(`${where} answered ${answer.status}: ${await answer.text()}`)
    return run
  }
  const put = (name: string, entries: number, note: string) =>
    submit('PUT', path, { version: 1, metadata: { name }, entries: groups(name, entries, note) })
  // Each one differs from the one before, however often this is used.
  const now = new Date().toISOString()
  await put('bench of a page', 3, `before ${now}`)
  const run = await put('bench of a page', 3, `after ${now}`)
  await put('bench of a set', 1_000, `before ${now}`)
  const set = await put('bench of a set', 1_000, `after ${now}`)
  const plan = await submit('POST', `${path}runs/${run}/apply/?dry_run=true`)
  return { run, plan, set }
}

const groups = (name: string, entries: number, note: string) =>
  Array.from({ length: entries }, (_, each) => ({
    model: 'service_core.group',
    identifiers: { name: `${name} ${each}` },
    attrs: { attributes: each % 2 === 0 ? { note } : {} },
  }))

/** Lets the user who submitted most of the runs read the pages, without `view_run`: their own runs only. @param secret of the token */
export const openReader = (url: string, secret: string): Promise<unknown> =>
  within(url, async (client: pg.Client) => {
    const { rows } = await client.query<{ pk: number }>(
      'SELECT submitter_pk AS pk FROM runs WHERE submitter_pk IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1',
    )
    const name = 'bench of pages'
    const { rowCount } = await client.query('SELECT FROM roles WHERE name = $1', [name])
    if (rowCount !== 0) return
    const [group, role, pk] = [uuid7(), uuid7(), rows[0]?.pk]
    await client.query("INSERT INTO roles (pk, name, permissions) VALUES ($1, $2, '{view_queue}')", [role, name])
    await client.query('INSERT INTO groups (pk, name) VALUES ($1, $2)', [group, name])
    await client.query('INSERT INTO group_roles (group_pk, role_pk) VALUES ($1, $2)', [group, role])
    await client.query('INSERT INTO memberships (group_pk, user_pk) VALUES ($1, $2)', [group, pk])
    await client.query(
      "INSERT INTO tokens (pk, identifier, intent, user_pk, expiring, key_hash) VALUES ($1, $2, 'api', $3, false, $4)",
      [uuid7(), name, pk, sha256(secret)],
    )
  })
