import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import * as tidy from './support/tidy.ts'

type Example = {
  rule: tidy.Rule
  /** What it finds is a question to ask: it is printed, and fails nothing. */
  isAdvice?: boolean
  bad: Record<string, string>[]
  good: Record<string, string>
}

/**
 * Each rule beside made-up trees that break it, one by one, and one that keeps it: a rule that cannot fail proves nothing.
 * What a rule finds is spelled out here (`any`, `test.skip`, `test.todo`): as text, not as code of this file.
 */
const rules: Record<string, Example> = {
  'imports run downwards only': {
    rule: tidy.importsRunDownwards,
    bad: [
      { 'src/db/client.ts': "import { user } from '../models/user.ts'" },
      { 'src/telemetry/trace.ts': '' },
      { 'src/queue/board.ts': "import { start } from '../app.ts'" },
      { 'src/errors.ts': "import type { Db } from './db/client.ts'" },
      { 'src/runs/work.ts': "const list = await import('../lists/list.ts')" },
      { 'src/api/users.ts': "export { buildApp } from '../app.ts'" },
      { 'workers/blueprint.ts': "import '../src/http/zod.ts'" },
      { 'src/api/health.ts': "import { work } from '../../workers/blueprint.ts'" },
      { 'src/app.ts': "import { make } from '../test/support/make.ts'" },
    ],
    good: {
      'src/models/user.ts': "// not from '../api/users.ts'\nimport { sql } from '../db/sql.ts'",
      'src/db/sql.ts': "import { createHash } from 'node:crypto'",
      'src/standalone/main.ts': "import { work } from '../workers/blueprint.ts'\nimport { buildApp } from './app.ts'",
      'workers/blueprint.ts':
        "import { run } from '../src/runs/work.ts'\nimport { readConfig } from '../src/config.ts'",
    },
  },
  'what runs in a worker does not load the web server': {
    rule: tidy.noWebServerBelowHttp,
    bad: [
      { 'workers/blueprint.ts': "import fastify from 'fastify'" },
      { 'src/models/user.ts': "import compress from '@fastify/compress'" },
      { 'src/queue/board.ts': "import { FastifyAdapter } from '@bull-board/fastify'" },
    ],
    good: {
      'src/app.ts': "import fastify from 'fastify'",
      'src/api/users.ts': "import type { FastifyInstance } from 'fastify'",
    },
  },
  'imports make no circles': {
    rule: tidy.noImportCircles,
    bad: [
      { 'src/db/a.ts': "import './b.ts'", 'src/db/b.ts': "import './c.ts'", 'src/db/c.ts': "import './a.ts'" },
      { 'test/support/a.ts': "import './a.ts'" },
    ],
    good: { 'src/db/a.ts': "import './b.ts'\nimport './c.ts'", 'src/db/b.ts': "import './c.ts'", 'src/db/c.ts': '' },
  },
  'files of api/ do not import each other': {
    rule: tidy.apiFilesStandAlone,
    bad: [{ 'src/api/users.ts': "import { groups } from './groups.ts'" }],
    good: { 'src/api/users.ts': "import { list } from '../lists/list.ts'" },
  },
  'models do not import each other': {
    rule: tidy.modelsStandAlone,
    bad: [
      { 'src/models/group.ts': "import user from './user.ts'", 'src/models/user.ts': 'export default defineModel({})' },
      {
        'src/models/providers/saml.ts': "import { x } from './oauth2.ts'",
        'src/models/providers/oauth2.ts': 'export default defineProvider({})',
      },
      { 'src/models/fields.ts': "import { registry } from './registry.ts'" },
    ],
    good: {
      'src/models/define.ts': 'export const defineModel = 1',
      'src/models/group.ts': "import { defineModel } from './define.ts'\nexport default defineModel({})",
      'src/models/registry.ts': "import group from './group.ts'",
      'src/models/providers/saml.ts': "import { defineProvider } from '../provider.ts'",
    },
  },
  'a provider kind is named in its own file only': {
    rule: tidy.kindsStayInTheirFiles,
    bad: [
      { 'src/models/providers/oauth2.ts': '', 'src/api/providers.ts': "if (kind === 'oauth2') grant()" },
      { 'src/models/providers/radius.ts': '', 'workers/blueprint.ts': "const kinds = ['radius']" },
    ],
    good: {
      'src/models/providers/oauth2.ts': "const kind = 'oauth2'",
      'src/db/rows.ts': "// 'oauth2'\nconst column = 'oauth2_client_id'",
    },
  },
  'pg stays where Prisma has no word': {
    rule: tidy.pgStaysInItsPlaces,
    bad: [
      { 'src/api/users.ts': "import pg from 'pg'" },
      { 'src/runs/ledger.ts': "import type { Pool } from 'pg'" },
      { 'src/lists/list.ts': "const { default: Cursor } = await import('pg-cursor')" },
    ],
    good: {
      'src/db/client.ts': "import pg from 'pg'",
      'src/runs/subscribe.ts': "import pg from 'pg'",
      'tools/seed/copy.ts': "import { from } from 'pg-copy-streams'",
      'src/api/users.ts': "import { Prisma } from '../db/generated/client.ts' // not from 'pg'",
    },
  },
  'raw SQL has its reason': {
    rule: tidy.rawSqlHasItsReason,
    bad: [
      { 'src/api/users.ts': 'const rows = await db.$queryRaw`SELECT 1`' },
      { 'workers/blueprint.ts': "await tx.$executeRawUnsafe('SELECT 1')" },
      { 'src/lists/list.ts': "import { type Statement, query } from '../db/raw.ts'" },
      { 'src/api/groups.ts': "import { withEngine as engine } from '../db/engine-tx.ts'" },
      { 'src/runs/ledger.ts': 'await db.run.count()' },
      { 'src/apply/check.ts': "tx.send({ text: 'DELETE FROM x', values: [] })" },
      { 'src/apply/check.ts': 'const text = `\n  UPDATE users SET name = $1`' },
    ],
    good: {
      'src/db/raw.ts': 'db.$queryRawUnsafe(text)',
      'src/runs/ledger.ts': "import { execute } from '../db/raw.ts'",
      'src/plan/diff.ts': "import type { Statement } from '../db/raw.ts'",
      'src/plan/inspect.ts': "import { type EngineReader } from '../db/engine-tx.ts'\nreader.query(row, statement)",
    },
  },
  'the environment is read in one place': {
    rule: tidy.environmentIsReadInOnePlace,
    bad: [{ 'src/server.ts': 'const { PORT } = process.env' }, { 'bench/main.ts': '`${process.env.URL}`' }],
    good: {
      'src/config.ts': 'process.env',
      'prisma.config.ts': 'process.env.X',
      'src/server.ts': '// process.env is not read here',
    },
  },
  'the type checker is not silenced': {
    rule: tidy.typesAreNotSilenced,
    bad: [
      { 'src/app.ts': 'const app: any = 1' },
      { 'test/x.test.ts': 'read(answer as any)' },
      { 'src/db/a.ts': 'new Map<string, Set<any>>()' },
      { 'workers/a.ts': `// @ts-${'expect-error'} it is fine` },
      { 'src/db/a.ts': `// @ts-${'ignore'}` },
    ],
    good: {
      'src/app.ts':
        "// as any\nconst mode: 'all' | 'any' = 'any'\nerrors.any\nconst anyone: Access = anyone\nreturn { more: any ? 1 : 0 }",
    },
  },
  'no test is skipped in silence': {
    rule: tidy.noSilentSkips,
    bad: [
      { 'test/a.test.ts': "test.skip('x', () => {})" },
      { 'test/a.test.ts': "describe.only('x', () => {})" },
      { 'test/a.test.ts': "test.todo('x')" },
      { 'test/a.test.ts': "test.only.each([1])('x', () => {})" },
      { 'test/a.test.ts': "describe.skipIf(slow)('x', () => {})" },
      { 'test/a.test.ts': "describe.runIf(process.platform === 'linux')('x', () => {})" },
    ],
    good: { 'test/a.test.ts': "describe.runIf(needs('redis-server'))('x', () => { expect(answer.skip).toBe(1) })" },
  },
  'folders are called after what they hold': {
    rule: tidy.foldersSayWhatTheyHold,
    bad: [
      { 'src/utils/a.ts': '' },
      { 'src/http/helpers/a.ts': '' },
      { 'test/lib/a.ts': '' },
      { 'src/services/x/a.ts': '' },
    ],
    good: { 'src/models/helpers.ts': '', 'src/library/a.ts': '' },
  },
  'files are short': {
    rule: tidy.filesAreShort,
    isAdvice: true,
    bad: [{ 'src/a.ts': 'x\n'.repeat(301) }, { 'test/a.test.ts': 'x\n'.repeat(301) }],
    good: {
      'src/a.ts': 'x\n'.repeat(300),
      'src/db/generated/client.ts': 'x\n'.repeat(9_000),
      'README.md': 'x\n'.repeat(400),
    },
  },
  'rooms keep their size': {
    rule: tidy.roomsKeepTheirSize,
    bad: [{ 'workers/a.ts': 'x\n'.repeat(900) }, { 'src/unheard-of/a.ts': '' }],
    good: { 'workers/a.ts': 'x\n', 'src/a.ts': 'x\n', 'src/db/generated/a.ts': 'x\n'.repeat(90_000) },
  },
  'no path of one machine': {
    rule: tidy.noMachinePaths,
    bad: [
      { 'README.md': `cd /${'home'}/ada/gatewright` },
      { 'src/a.ts': `'/${'root'}/.npmrc'` },
      { a: `C:\\${'Users'}\\ada` },
    ],
    good: {
      Dockerfile: 'WORKDIR /home/node/app',
      'src/a.ts': "app.get('/core/users/me/')\n'https://gatewright.test/home/ada'",
    },
  },
  'packages come from the public registry': {
    rule: tidy.packagesComeFromThePublicRegistry,
    bad: [{ 'package-lock.json': '"resolved": "http://mirror.internal/zod.tgz"' }],
    good: { 'package-lock.json': '"resolved": "https://registry.npmjs.org/zod/-/zod-4.6.7.tgz"' },
  },
  'every migration has its SQL': {
    rule: tidy.migrationsHaveSql,
    bad: [{ 'prisma/migrations/2_more/README.md': '' }],
    good: { 'prisma/migrations/1_first/migration.sql': '', 'prisma/migrations/migration_lock.toml': '' },
  },
}

const project = readProject()

describe.each(Object.entries(rules))('%s', (_, { rule, isAdvice = false, bad, good }) => {
  test('in this project', () => {
    const found = rule(project)
    if (isAdvice) for (const each of found) console.warn(each)
    expect(isAdvice ? [] : found).toEqual([])
  })

  test.each(bad.map((tree) => [sample(tree), tree]))('%s is found', (_text, tree) => {
    expect(rule(new Map(Object.entries(tree)))).toHaveLength(1)
  })

  test('what keeps the rule passes', () => {
    expect(rule(new Map(Object.entries(good)))).toEqual([])
  })
})

test('the project that is read is this one', () => {
  expect([...project.keys()]).toEqual(
    expect.arrayContaining(['package.json', 'src/config.ts', 'test/tidy.test.ts', '.ci/run']),
  )
})

test('every exported rule is held here', () => {
  const exported = Object.entries(tidy)
    .filter(([name]) => name !== 'code')
    .map(([, rule]) => rule)
  expect(new Set(Object.values(rules).map(({ rule }) => rule))).toEqual(new Set(exported))
})

const sample = (tree: Record<string, string>) =>
  Object.entries(tree)
    .map(([path, text]) => `${path}: ${text.split('\n', 1)}`)
    .join('; ')

/** All text files but those that git ignores. */
function readProject(): tidy.Files {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const ignored = /(^|\/)node_modules$|^(\.git|\.data|coverage|src\/db\/generated)$|\.(log|png|ico|woff2?)$/
  const files = new Map<string, string>()
  const visit = (folder: string) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const place = join(folder, entry.name)
      const path = relative(root, place).split(sep).join('/')
      if (ignored.test(path)) continue
      if (entry.isDirectory()) visit(place)
      else if (entry.isFile()) files.set(path, readFileSync(place, 'utf8'))
    }
  }
  visit(root)
  return files
}
