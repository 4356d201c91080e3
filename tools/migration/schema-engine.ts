import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { PrismaPg } from '@prisma/adapter-pg'
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from '@prisma/driver-adapter-utils'
import type { MigrationList, SchemaEngine } from '@prisma/schema-engine-wasm'
import pg from 'pg'
import {
  isOutside,
  migrationNames,
  migrationScript,
  migrationsFolder,
  outsideStatements,
} from '../../src/db/migrations.ts'

/** The used part of the global, whose types are in the DOM library, which a server does not load. */
declare namespace WebAssembly {
  function instantiate(bytes: Uint8Array, imports: Record<string, object>): Promise<{ instance: { exports: object } }>
}

export const readSchema = (): Promise<string> =>
  readFile(new URL('../../prisma/schema.prisma', import.meta.url), 'utf8')

/** The migrations as the engine takes them. */
export async function migrationsList(): Promise<MigrationList> {
  const names = await migrationNames()
  return {
    baseDir: fileURLToPath(migrationsFolder),
    lockfile: { path: './migration_lock.toml', content: 'provider = "postgresql"\n' },
    shadowDbInitScript: '',
    migrationDirectories: await Promise.all(
      names.map(async (name) => ({
        path: name,
        migrationFile: { path: 'migration.sql', content: { tag: 'ok' as const, value: await migrationScript(name) } },
      })),
    ),
  }
}

/** Includes everything in a comparison. */
export const noFilter = { externalTables: [], externalEnums: [] }

/** Exports of the package beside its typed API. */
type Glue = { __wbg_set_wasm(exports: object): void; SchemaEngine: typeof SchemaEngine }

/**
 * Prisma's schema engine as WebAssembly, which needs no download and runs on any platform. Loading takes 100 ms and tens
 * of megabytes.
 *
 * @param pool the caller closes it. For a shadow database, it must have no `connectionString`, which would override the
 *   database's name
 */
export async function loadSchemaEngine(pool: pg.Pool): Promise<SchemaEngine> {
  // Not by the package's entry: it imports the .wasm file as a module, and Node prints a warning.
  const glue = await import('@prisma/schema-engine-wasm/schema_engine_bg')
  const { __wbg_set_wasm, SchemaEngine: Engine } = glue as unknown as Glue
  const binary = createRequire(import.meta.url)
    .resolve('@prisma/schema-engine-wasm/schema_engine_bg')
    .replace(/\.js$/, '.wasm')
  const { instance } = await WebAssembly.instantiate(await readFile(binary), { './schema_engine_bg.js': glue })
  __wbg_set_wasm(instance.exports)
  ;(instance.exports as { __wbindgen_start(): void }).__wbindgen_start()
  const adapter = bindMigrationAwareSqlAdapterFactory(new WholeScripts(pool))
  return Engine.new({ datamodels: [['schema.prisma', await readSchema()]] }, () => {}, adapter)
}

/**
 * The engine for a comparison, which makes a shadow database.
 *
 * @param url of a server, with a user that may create databases
 */
export function loadComparingEngine(url: string): Promise<SchemaEngine> {
  const { hostname, port, username, password, pathname } = new URL(url)
  // Not as a URL: its database name would replace that of the shadow database.
  const server = { host: hostname, port: Number(port), user: username, password, database: pathname.slice(1) }
  return loadSchemaEngine(new pg.Pool(server))
}

/**
 * Fixes errors of the adapter. Its `executeScript` splits a script at each semicolon, even in texts, comments and
 * functions; Prisma's native engine parses it, and sends it whole when it cannot. And its shadow database has no
 * password, and cannot be dropped, because its own connection is still open.
 */
class WholeScripts extends PrismaPg {
  readonly #pool: pg.Pool

  constructor(pool: pg.Pool) {
    super(pool)
    this.#pool = pool
  }

  override async connect() {
    return whole(await super.connect())
  }

  override async connectToShadowDb() {
    const database = `shadow_${randomUUID()}`
    await this.#pool.query(`CREATE DATABASE "${database}"`)
    const { options } = this.#pool
    // The password is not enumerable.
    const shadow = new pg.Pool({ ...options, password: options.password, database })
    const adapter = withChars(whole(await new PrismaPg(shadow).connect()), shadow)
    adapter.dispose = async () => {
      await shadow.end()
      await this.#pool.query(`DROP DATABASE "${database}"`)
    }
    return adapter
  }
}

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>

function whole(adapter: Adapter): Adapter {
  adapter.executeScript = async (script) => {
    for (const sql of isOutside(script) ? outsideStatements(script) : [script])
      await adapter.executeRaw({ sql, args: [], argTypes: [] })
  }
  return adapter
}

/** PostgreSQL's catalogues have columns of type "char". The engine needs them, and the adapter does not know the type. */
function withChars(adapter: Adapter, pool: pg.Pool): Adapter {
  const charOid = 18
  const isChar = ({ dataTypeID }: pg.FieldDef) => dataTypeID === charOid
  // The engine sends one query after the other, so these are the columns of the current answer.
  let chars: number[] = []
  const query: (...given: unknown[]) => Promise<pg.QueryResult> = pool.query.bind(pool)
  Object.defineProperty(pool, 'query', {
    value: async (...given: unknown[]) => {
      const result = await query(...given)
      // The result of a script is a list of results, without `fields`.
      const { fields = [] } = result
      chars = fields.flatMap((field, column) => (isChar(field) ? [column] : []))
      for (const field of fields.filter(isChar)) field.dataTypeID = pg.types.builtins.TEXT
      return result
    },
  })
  const queryRaw = adapter.queryRaw.bind(adapter)
  adapter.queryRaw = async (asked) => {
    const result = await queryRaw(asked)
    for (const column of chars) result.columnTypes[column] = ColumnTypeEnum.Character
    return result
  }
  return adapter
}
