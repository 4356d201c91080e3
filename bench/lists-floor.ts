import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import pg from 'pg'

/**
 * The floor of the lists, as a process: the same reads by hand-written SQL over node:http, without checks and limits.
 * Prints its port.
 */

const [, , database = ''] = process.argv
const pool = new pg.Pool({ connectionString: database, max: 4 })
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

const person = `u.pk, u.username, u.name, u.is_active, u.last_login, u.email, u.attributes, u.path, u.type, u.uuid,
  ARRAY(SELECT m.group_pk FROM memberships m WHERE m.user_pk = u.pk) AS groups,
  EXISTS (SELECT FROM memberships m JOIN group_ancestors a ON a.group_pk = m.group_pk JOIN groups g ON g.pk = a.ancestor_pk
    WHERE m.user_pk = u.pk AND g.is_superuser) AS is_superuser`
const allText = `lower(u.username || ' ' || u.name || ' ' || u.email || ' ' || u.uuid::text)`

async function authenticate(header: string | undefined): Promise<boolean> {
  const hash = createHash('sha256')
    .update(header?.slice('Bearer '.length) ?? '')
    .digest()
  const text = `SELECT u.pk FROM tokens t JOIN users u ON u.pk = t.user_pk
    WHERE t.key_hash = $1 AND t.intent = 'api' AND u.is_active AND (NOT t.expiring OR t.expires > now())`
  const { rows } = await pool.query({ name: 'token', text, values: [hash] })
  return rows.length === 1
}

async function page(where: string, values: unknown[], offset: number): Promise<unknown> {
  const [{ rows: counted }, { rows: users }] = await Promise.all([
    pool.query<{ count: number }>(`SELECT count(*) FROM users u ${where}`, values),
    pool.query(`SELECT ${person} FROM users u ${where} ORDER BY u.username LIMIT 100 OFFSET ${offset}`, values),
  ])
  const keys = [...new Set(users.flatMap((user) => user.groups))]
  const { rows: groups } = await pool.query(
    'SELECT g.pk, g.num_pk, g.name, g.is_superuser, g.parent, p.name AS parent_name, g.attributes FROM groups g LEFT JOIN groups p ON p.pk = g.parent WHERE g.pk = ANY($1)',
    [keys],
  )
  const byKey = new Map(groups.map((group) => [group.pk, group]))
  const results = users.map((user) => ({ ...user, groups_obj: user.groups.map((key: string) => byKey.get(key)) }))
  return { pagination: { count: counted[0]?.count }, results }
}

async function me(): Promise<unknown> {
  const { rows } = await pool.query({
    name: 'me',
    text: `SELECT ${person}, ARRAY(SELECT g.name FROM memberships m JOIN group_ancestors a ON a.group_pk = m.group_pk JOIN groups g ON g.pk = a.ancestor_pk WHERE m.user_pk = u.pk) AS names FROM users u WHERE u.pk = 1`,
  })
  return { user: rows[0] }
}

function answer(url: URL): Promise<unknown> {
  const { pathname, searchParams: asked } = url
  if (pathname.endsWith('/me/')) return me()
  const search = asked.get('search')
  const attributes = asked.get('attributes')
  const group = asked.get('groups_by_name')
  const offset = (Number(asked.get('page') ?? 1) - 1) * 100
  if (search !== null) return page(`WHERE ${allText} LIKE $1`, [`%${search}%`], offset)
  if (attributes !== null) return page('WHERE u.attributes @> $1::jsonb', [attributes], offset)
  if (group !== null)
    return page(
      'WHERE u.pk IN (SELECT m.user_pk FROM memberships m JOIN groups g ON g.pk = m.group_pk WHERE g.name = $1)',
      [group],
      offset,
    )
  return page('', [], offset)
}

const server = createServer(async ({ url = '', headers }, response) => {
  if (!(await authenticate(headers.authorization))) return response.writeHead(401).end()
  const body = JSON.stringify(await answer(new URL(url, 'http://floor')))
  return response
    .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    .end(body)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(`port ${typeof address === 'object' ? address?.port : ''}`)
})
