import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { PrismaPg } from '@prisma/adapter-pg'
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from '@prisma/driver-adapter-utils'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import pg from 'pg'
import { readSchema } from './migrations.ts'

/** The part of the global that is used here: the DOM's types, which have it, have no place in a server. */
declare namespace WebAssembly {
  function instantiate(bytes: Uint8Array, imports: Record<string, object>): Promise<{ instance: { exports: object } }>
}

/** What wasm-bindgen's package exports beside its typed API. */
type Glue = { __wbg_set_wasm(exports: object): void; SchemaEngine: typeof SchemaEngine }

/**
 * Prisma's own schema engine, as WebAssembly: it needs no download and runs on any platform. Loading costs some
 * 100 ms and tens of megabytes, so callers ask for it only when there is something to do.
 *
 * @param pool what it works on; it is the caller's to close. For a shadow database, without a `connectionString`,
 *   which would win over that database's name
 */
export async function loadSchemaEngine(pool: pg.Pool): Promise<SchemaEngine> {
  // The package's own entry imports the .wasm file as a module, at which Node warns; its parts can be put together.
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
 * Mends faults of the adapter. Its `executeScript` cuts a script at each semicolon, those in texts, comments and
 * functions included: PostgreSQL takes it whole, as Prisma's native engine sends it. And its shadow database has
 * no password, and cannot be dropped because its own connection is still open then.
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
    // The pool hides its password from copies.
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
    await adapter.executeRaw({ sql: script, args: [], argTypes: [] })
  }
  return adapter
}

/** PostgreSQL's catalogues have columns of type "char", which the engine wants and the adapter does not know. */
function withChars(adapter: Adapter, pool: pg.Pool): Adapter {
  const charOid = 18
  const isChar = ({ dataTypeID }: pg.FieldDef) => dataTypeID === charOid
  // The engine asks one thing after the other, so these are the columns of the answer that is being read.
  let chars: number[] = []
  const query: (...given: unknown[]) => Promise<pg.QueryResult> = pool.query.bind(pool)
  Object.defineProperty(pool, 'query', {
    value: async (...given: unknown[]) => {
      const result = await query(...given)
      // A script of several statements has a list of answers, and no fields of its own.
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
