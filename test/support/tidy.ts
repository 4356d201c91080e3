import { posix } from 'node:path'

/** The project's files: path from its top, with `/`, to text. */
export type Files = ReadonlyMap<string, string>

/** The house style as rules over text. Each reports what is wrong where: `src/db/client.ts imports src/models/user.ts`. */
export type Rule = (files: Files) => string[]

/** The source without comments; with `strings: false` without the contents of texts either. */
export function code(text: string, { strings }: { strings: boolean }): string {
  const parts = /\/\*[\s\S]*?\*\/|(?<!:)\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g
  return text.replace(parts, (part) => {
    if (part.startsWith('/')) return ''
    if (strings) return part
    return part.startsWith('`') ? (part.match(/\$\{[^}]*\}/g) ?? []).join(' ') : "''"
  })
}

const sources = (files: Files, folder: RegExp): [string, string][] =>
  [...files].filter(([path]) => folder.test(path) && path.endsWith('.ts') && !path.startsWith('src/db/generated/'))

const anySource = /^(src|workers|tools|test|bench)\//

/** What a file imports: paths of the project for relative ones, names of packages for others. */
function imports(path: string, text: string): string[] {
  const found = code(text, { strings: true }).matchAll(/\b(?:from\s+|import\s*\(?\s*)'([^'\n]+)'/g)
  return [...found].map(([, target = '']) =>
    target.startsWith('.') ? posix.join(posix.dirname(path), target) : target,
  )
}

const edges = (files: Files, folder: RegExp) =>
  sources(files, folder).flatMap(([path, text]) => imports(path, text).map((target) => ({ path, target })))

/** The lowest is first; a file imports its own layer and lower ones. */
const layers = [
  [
    /^src\/(attempt|config|error-codes|errors|example|forget-oldest|hidden|ids|json-object|log|messages|names|numbers|paths|permissions|pipeline|process|process-metrics|redis-url|secret-file|series|sides|start-error|time-limit|token-secret|tracing|turns|without-reader)\.ts$/,
  ],
  ...[
    'tracing',
    'db',
    'models',
    'document',
    'plan',
    'rights',
    'apply',
    'runs',
    'queue',
    'views',
    'http',
    'lists',
    'exchange',
    'waits',
    'submissions',
  ].map(room),
  [/^src\/openapi\//],
  [/^src\/dashboard\//],
  [/^src\/api\//],
  // Other files of `src/` wire things together.
  [/^src\/(?!server)[^/]+$/, /^workers\//],
  [/^src\/server\.ts$/],
  [/^src\/(cli|standalone)\//],
  [/^tools\//],
  [/^(test|bench)\//],
]

function room(name: string): RegExp[] {
  return [new RegExp(`^src/${name}/`)]
}

const layerOf = (path: string) => layers.findIndex((patterns) => patterns.some((pattern) => pattern.test(path)))

/** Workers take what stands below HTTP. */
const heightOf = (path: string) => (path.startsWith('workers/') ? layerOf('src/queue/') : layerOf(path))

const isProject = (path: string) => anySource.test(path)

export const importsRunDownwards: Rule = (files) => [
  ...edges(files, anySource)
    .filter(({ path, target }) => isProject(target) && layerOf(target) > heightOf(path) && !sameFolder(path, target))
    .map(({ path, target }) => `${path} imports ${target}, which stands above it`),
  ...sources(files, anySource)
    .filter(([path]) => layerOf(path) === -1)
    .map(([path]) => `${path} is in no layer: give its folder a place in the order`),
]

const sameFolder = (one: string, other: string) =>
  posix.dirname(one) === posix.dirname(other) && one.startsWith('workers/')

/** What runs in a worker never loads the web server. */
export const noWebServerBelowHttp: Rule = (files) =>
  edges(files, /^(src|workers)\//)
    .filter(
      ({ path, target }) => heightOf(path) < layerOf('src/http/') && /^(fastify|@fastify\/|@bull-board\/)/.test(target),
    )
    .map(({ path, target }) => `${path} imports ${target}, which only http/ and above may`)

export const noImportCircles: Rule = (files) => {
  const graph = new Map(sources(files, anySource).map(([path, text]) => [path, imports(path, text)]))
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (path: string, trail: string[]) => {
    if (trail.includes(path)) circles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '))
    if (done.has(path) || trail.includes(path)) return
    for (const target of graph.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return circles
}

export const apiFilesStandAlone: Rule = (files) =>
  edges(files, /^src\/api\//)
    .filter(({ target }) => target.startsWith('src/api/'))
    .map(({ path, target }) => `${path} imports ${target}: what both need belongs below`)

/** A model's file exports its declaration as the default; what models share, such as `fields.ts`, does not. */
const isModel = (files: Files, path: string) =>
  path.startsWith('src/models/') && /^export default\b/m.test(code(files.get(path) ?? '', { strings: false }))

/** Only the registry, `registry.ts`, knows them all. */
export const modelsStandAlone: Rule = (files) =>
  edges(files, /^src\/models\/(?!registry\.ts$)/)
    .filter(({ target }) => target === 'src/models/registry.ts' || isModel(files, target))
    .map(({ path, target }) => `${path} imports ${target}: a model refers to another by its name`)

/** A provider kind's name is known to its own file alone: nothing else may depend on which kind it is. */
export const kindsStayInTheirFiles: Rule = (files) => {
  const kinds = [...files.keys()].flatMap((path) => path.match(/^src\/models\/providers\/(\w+)\.ts$/)?.[1] ?? [])
  return sources(files, /^(src(?!\/models\/providers\/)|workers)\//).flatMap(([path, text]) => {
    const plain = code(text, { strings: true })
    return kinds
      .filter((kind) => plain.includes(`'${kind}'`))
      .map((kind) => `${path} names the provider kind '${kind}'`)
  })
}

/** Files that may import `pg`, each for what Prisma cannot do. */
const pgPlaces: Readonly<Record<string, string>> = {
  'src/db/backup.ts': 'COPY, on a connection of its own',
  'src/db/client.ts': "the pool of Prisma's adapter",
  'src/db/pipeline.ts': 'the second implementation of EngineTx, on the same pool',
  'src/db/pooled-client.ts': 'the connections of that pool, by way of a pooler',
  'src/db/migrate.ts': 'migrations, and the lock of a session around them',
  'src/db/restore.ts': 'COPY',
  'src/tracing/statements.ts': 'the driver whose statements are traced',
  'src/db/roles.ts': 'logins and rights, with the login of the owner',
  'src/queue/migrate.ts': "BullMQ's migrations",
  'src/queue/preparing-client.ts': "the connections of BullMQ's pools",
  'src/runs/forget.ts': 'a transaction that may take minutes, on a connection of its own',
  'src/runs/subscribe.ts': 'LISTEN',
  'src/standalone/embedded/server.ts': 'whether a server accepts connections',
  'src/db/session.ts': 'a connection of its own, for what Prisma has no word for',
  'tools/migration/schema-engine.ts': "the connections of Prisma's schema engine",
  'tools/seed/copy.ts': 'COPY',
  'tools/seed/seed.ts': 'the transaction of a COPY',
}

export const pgStaysInItsPlaces: Rule = (files) =>
  edges(files, anySource)
    .filter(
      ({ path, target }) =>
        /^pg(-|\/|$)/.test(target) && !/^(test|bench)\//.test(path) && !Object.hasOwn(pgPlaces, path),
    )
    .map(({ path }) => `${path} imports pg: send the statement through Prisma`)

/** Files that hold raw SQL or send it, each with the reason why Prisma's models do not serve. */
const rawSql: Readonly<Record<string, string>> = {
  'src/db/accepts-changes.ts': 'settings, and rows that no table has, for a temporary file',
  'src/db/backup.ts': 'the catalogue of PostgreSQL has no model',
  'src/db/catalog.ts': 'the catalogue of PostgreSQL has no model',
  'src/db/client.ts': "a transaction's time-outs are settings of the session",
  'src/db/connections.ts': 'settings of PostgreSQL, and sums by the clock of the database',
  'src/db/engine-tx.ts': 'statements of the engine are made from model declarations',
  'src/db/migrate.ts': "_prisma_migrations is Prisma's own table, and no model",
  'src/db/raw.ts': 'it is the one way in for all others',
  'src/db/restore.ts': 'the catalogue of PostgreSQL, and sequences, have no model',
  'src/db/roles.ts': 'logins and rights have no model',
  'src/db/sums.ts': 'adds to many rows, of which some are there, in one statement',
  'src/db/row-counts.ts': 'adding up is one statement, behind a lock of its own',
  'src/plan/compute.ts': 'the time by the clock of the database',
  'src/plan/load.ts': 'the engine loads all rows that entries ask for in one statement, made from model declarations',
  'src/plan/misses.ts': 'similar names, by an index of pg_trgm',
  'src/plan/statements.ts': 'the engine makes its statements from model declarations',
  'src/rights/gains-sql.ts': 'the users who gain rights by a document are one statement of the engine',
  'src/rights/writer.ts': "columns of the engine's row",
  'src/exchange/exchange.ts':
    'a limit, the clock of the database, and whether the identity token came before, in one statement',
  'src/dashboard/records/tokens.ts': 'the view of all bearer tokens has no model',
  'src/api/exchange.ts': 'the view of all bearer tokens has no model',
  'src/rights/actor.ts': 'a user with all inherited rights is one statement of the engine',
  'src/rights/rights.ts': 'the facts of a decision are one statement of the engine',
  'src/apply/audit.ts': "a row of the engine's transaction",
  'src/apply/execute.ts': 'advisory locks',
  'src/apply/stack.ts':
    'members of a stack are read and written in one statement each, in the transaction of the engine',
  'src/apply/bootstrap.ts': 'an advisory lock; the engine applies the shipped blueprint',
  'src/apply/token-key.ts': 'FOR UPDATE lets one caller have the key; the engine checks rights',
  'src/apply/write.ts': 'the engine writes the row of a request',
  'src/db/pooled-client.ts': 'settings of a transaction',
  'src/db/pooler.ts': 'the session of a connection, and the names of its prepared statements',
  'src/db/presence.ts':
    "the database's clock counts, not that of the process; one statement says, and forgets the others",
  'src/queue/heartbeat.ts': "the database's clock counts, not the worker's",
  'src/queue/migrate.ts': "a function of BullMQ's schema",
  'src/runs/queued.ts': 'the index of queued runs needs the state in the text',
  'src/submissions/backlog.ts': 'ages by the clock of the database, of several tables at once',
  'src/runs/idempotency.ts': 'a key is free by the state of its run and the clock of the database',
  'src/runs/plans.ts': "a savepoint in the engine's transaction",
  'src/waits/consumer-changes.ts': 'what is visible in one snapshot and not in another, and data-modifying CTEs',
  'src/waits/revision.ts': 'what is visible in one snapshot and not in another, SKIP LOCKED',
  'src/runs/ledger.ts': 'commits that do not wait for the disk, row locks, updates that depend on the state',
  'src/runs/ended.ts': 'lists of keys of any length, and notifications',
  'src/runs/finish.ts': "the worker's transaction, and updates that depend on the state",
  'src/runs/worker-ledger.ts': 'statements of finish.ts and ledger.ts outside of the transaction',
  'src/runs/forget.ts': 'columns are named by the models; each is cleared in one statement',
  'src/runs/reseal.ts': 'columns are named by the models; values are compared and replaced in one statement',
  'src/apply/history.ts': 'what an object was called, for statements of others',
  'src/runs/since-plan.ts': 'the last recorded change of each object of a document, in the transaction of the engine',
  'src/submissions/recorded.ts': 'a history is a view, read by the index of audit rows',
  'src/runs/at-work.ts': 'PostgreSQL knows whose transaction has a lock, and what it waits for',
  'src/api/consumer-acts.ts': 'a thousand rows by names, in one statement that says which name nothing',
  'src/views/me.ts': 'each ancestor once, with settings only where an index has them',
  'src/views/stack.ts': 'members with the names of their objects, which any table may have',
  'src/views/repair.ts': 'the earliest of several later rows for each of many',
  'src/views/run-summary.ts': 'a part of a list, and counts of what JSON holds, of many rows',
  'src/lists/runs-of-operators.ts': 'outcomes, which are expressions, and runs of the same objects, for find.ts',
  'src/lists/run-rows.ts': 'an outcome is an expression, and of a log only the first line is read',
  'src/lists/runs.ts': 'the labels of a run in its options, for find.ts and run-rows.ts',
  'src/lists/application-states.ts': 'one word from several tables, which is a filter too',
  'src/lists/consumers.ts': 'snapshots, and users with all inherited rights, in one statement',
  'src/lists/owner-states.ts': 'counts of that word by owner, and the newest run of each',
  'src/lists/run-figures.ts': 'quantiles, and counts by outcome, which is an expression',
  'src/views/audit.ts': 'a part of what JSON holds',
  'src/runs/outside.ts': 'the newest value of each field in the changes of an object, and a part of what JSON holds',
  'src/views/former-owner.ts': 'a part of what JSON holds, of many rows',
  'src/views/history.ts': 'a union over objects and their names, and a part of what JSON holds',
  'src/lists/changed-object.ts': 'a condition on a relation that has no key, for find.ts',
  'src/runs/retention.ts': 'portions: LIMIT, SKIP LOCKED and DELETE of the same rows in one statement',
  'src/runs/subscribe.ts': 'LISTEN, and a question that shows that the connection lives',
  'src/runs/reconciler-ledger.ts': 'SKIP LOCKED, an advisory lock, updates of many rows with a value each',
  'src/submissions/check.ts': 'the engine checks a document before it is queued',
  'src/http/access.ts': 'authentication and rights are one statement of the engine',
  'src/submissions/former.ts': 'the rights of the submitter of a former document, as those of a caller',
  'src/lists/filters.ts': 'conditions on relations, for find.ts',
  'src/lists/find.ts': 'counts, and keys by conditions that a model cannot say',
  'src/lists/tables.ts':
    'search by trigram and effective rights; a model cannot say them or uses no index for them, for find.ts',
  'src/http/plausible.ts': 'the digests of tokens are one statement of the engine',
  'src/lists/conditions.ts': 'the owner of a consent, for find.ts',
  'src/standalone/embedded.ts': 'CREATE DATABASE, before there is one to connect Prisma to',
  'tools/seed/seed.ts': 'COPY in one transaction, on a connection of its own',
  'src/views/members.ts':
    'two hundred thousand members: their keys as one list, and users by a list of keys that is prepared once',
  'src/views/key-names.ts': 'names of rows of several tables, in one statement',
  'src/views/repeated.ts': 'the length of stored JSON has no model',
  'src/dashboard/login.ts': 'a session is a token: authentication is one statement of the engine',
}

/** A text that starts, or a template that has a line that starts, as a statement does. */
const sqlText = /['"`\n(]\s*(SELECT (?!.*\bfrom '\.)|INSERT INTO |UPDATE ["$\w{}]+ SET |DELETE FROM |WITH \w+ AS \()/

const rawDoors = new Set(['src/db/raw.ts', 'src/db/engine-tx.ts'])

function writesRawSql(path: string, text: string): boolean {
  const plain = code(text, { strings: true })
  if (/\$(queryRaw|executeRaw)/.test(plain) || sqlText.test(plain)) return true
  return [...plain.matchAll(/\bimport\s*\{([^}]*)\}\s*from\s*'(\.[^'\n]+)'/g)].some(
    ([, names = '', target = '']) =>
      rawDoors.has(posix.join(posix.dirname(path), target)) &&
      names.split(',').some((name) => /^(query|execute|reader|withEngine)\b/.test(name.trim())),
  )
}

export const rawSqlHasItsReason: Rule = (files) =>
  sources(files, /^(src|workers|tools)\//).flatMap(([path, text]) => {
    const writes = writesRawSql(path, text)
    if (writes && rawSql[path] === undefined)
      return [`${path} writes raw SQL: use a model, or give the reason in tidy.ts`]
    if (!writes && rawSql[path] !== undefined) return [`${path} writes no raw SQL any more: take it off the list`]
    return []
  })

/** Files in which a pattern occurs, outside of comments and texts. */
const without =
  (folder: RegExp, pattern: RegExp, complaint: string, exceptions: string[] = []): Rule =>
  (files) =>
    sources(files, folder)
      .filter(([path, text]) => !exceptions.includes(path) && pattern.test(code(text, { strings: false })))
      .map(([path]) => `${path} ${complaint}`)

export const environmentIsReadInOnePlace = without(/^(?!prisma\.config)/, /\bprocess\.env\b/, 'reads process.env', [
  'src/config.ts',
  'test/support/environment.ts',
  'examples/sign-in/settings.ts',
])

export const typesAreNotSilenced: Rule = (files) => [
  ...without(anySource, /(?::|\bas|<|\|)\s*any\b(?!\s*\?)/, 'uses any')(files),
  ...sources(files, anySource)
    .filter(([, text]) => /@ts-(ignore|expect-error|nocheck)/.test(text))
    .map(([path]) => `${path} silences the type checker`),
]

/** `describe.runIf(needs('redis-server'))` is the one way to skip: it says so at the end of the run. */
export const noSilentSkips = without(
  /^test\//,
  /\.(?:skip|only|todo|skipIf)\b\s*[.(]|\.runIf\(\s*(?!needs\()/,
  'skips or singles out tests',
)

export const foldersSayWhatTheyHold: Rule = (files) => {
  const folders = new Set([...files.keys()].map((path) => posix.dirname(path)))
  return [...folders]
    .filter((path) => /(^|\/)(utils?|helpers?|common|services?|libs?)(\/|$)/.test(path))
    .map((path) => `${path} is called after nothing`)
}

/** A longer file may be right: the number is a question to ask. */
const maxLines = 300

export const filesAreShort: Rule = (files) =>
  sources(files, anySource)
    .map(([path, text]) => ({ path, lines: text.trimEnd().split('\n').length }))
    .filter(({ lines }) => lines > maxLines)
    .map(({ path, lines }) => `${path} has ${lines} lines, more than ${maxLines}`)

/**
 * The most lines of each room, `src/*.ts` among them, and of all tests. A room that needs more gets more in the commit that
 * needs it, with the reason.
 */
const linesOfRooms: Readonly<Record<string, number>> = {
  src: 2393,
  'src/api': 2151,
  'src/apply': 2978,
  'src/cli': 6328,
  'src/dashboard': 4559,
  'src/db': 2238,
  'src/exchange': 392,
  'src/document': 1829,
  'src/http': 2530,
  'src/lists': 1888,
  'src/models': 2875,
  'src/openapi': 1324,
  'src/plan': 4563,
  'src/queue': 1203,
  'src/rights': 1475,
  'src/runs': 3182,
  'src/standalone': 1222,
  'src/submissions': 1500,
  'src/tracing': 177,
  'src/views': 2773,
  'src/waits': 543,
  test: 78_968,
  workers: 106,
}

export const roomsKeepTheirSize: Rule = (files) => {
  const lines = new Map<string, number>()
  for (const [path, text] of files) {
    const room = path.match(/^src\/[^/]+(?=\/)|^(?:src|workers|test)(?=\/)/)?.[0]
    if (room === undefined || path.includes('/generated/')) continue
    lines.set(room, (lines.get(room) ?? 0) + text.split('\n').length - 1)
  }
  return [...lines].flatMap(([room, has]) => {
    const most = linesOfRooms[room]
    if (most === undefined) return [`${room} has no number of lines in linesOfRooms`]
    return has > most ? [`${room} has ${has} lines, more than ${most}`] : []
  })
}

export const noMachinePaths: Rule = (files) =>
  [...files].flatMap(([path, text]) => {
    const found = text.match(
      /(?<![\w./:-])\/(?:home\/(?!node\b)|Users\/|root\/|work\/)[\w.][\w./-]*|\b[A-Z]:\\Users\\\w+/,
    )
    return found === null ? [] : [`${path} has a path of one machine: ${found[0]}`]
  })

export const packagesComeFromThePublicRegistry: Rule = (files) => {
  const resolved = [...(files.get('package-lock.json') ?? '').matchAll(/"resolved": "([^"]+)"/g)].map(
    ([, url = '']) => url,
  )
  return resolved
    .filter((url) => !url.startsWith('https://registry.npmjs.org/'))
    .map((url) => `package-lock.json takes ${url}`)
}

export const migrationsHaveSql: Rule = (files) => {
  const folders = new Set(
    [...files.keys()].flatMap((path) => path.match(/^prisma\/migrations\/[^/]+(?=\/)/)?.[0] ?? []),
  )
  return [...folders]
    .filter((folder) => !files.has(`${folder}/migration.sql`))
    .map((folder) => `${folder} has no migration.sql`)
}
