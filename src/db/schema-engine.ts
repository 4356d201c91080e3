import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { PrismaPg } from '@prisma/adapter-pg'
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import type pg from 'pg'
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
 * @param pool what it works on; it is the caller's to close
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
 * The adapter's own `executeScript` cuts a script at each semicolon, those in texts, comments and functions included.
 * PostgreSQL takes it whole, as Prisma's native engine sends it.
 */
class WholeScripts extends PrismaPg {
  override async connect() {
    return whole(await super.connect())
  }

  override async connectToShadowDb() {
    return whole(await super.connectToShadowDb())
  }
}

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>

function whole(adapter: Adapter): Adapter {
  adapter.executeScript = async (script) => {
    await adapter.executeRaw({ sql: script, args: [], argTypes: [] })
  }
  return adapter
}
