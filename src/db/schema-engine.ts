import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { PrismaPg } from '@prisma/adapter-pg'
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils'
import type { MigrationList, SchemaEngine } from '@prisma/schema-engine-wasm'

/** `prisma/` at the top of the project, where the schema and the migrations are. */
export const prismaFolder = new URL('../../prisma/', import.meta.url)

/**
 * Prisma's own schema engine, as WebAssembly: it needs no download and runs on any platform. Loading costs some
 * 100 ms and tens of megabytes, so callers ask for it only when there is something to do.
 */
export async function loadSchemaEngine(url: string): Promise<SchemaEngine> {
  // The package's own entry imports the .wasm file as a module, which Node cannot; its parts can be put together.
  const glue = await import('@prisma/schema-engine-wasm/schema_engine_bg')
  const binary = createRequire(import.meta.url)
    .resolve('@prisma/schema-engine-wasm/schema_engine_bg')
    .replace(/\.js$/, '.wasm')
  const { instance } = await WebAssembly.instantiate(await readFile(binary), {
    './schema_engine_bg.js': glue as unknown as WebAssembly.ModuleImports,
  })
  const { __wbg_set_wasm, SchemaEngine: Engine } = glue as unknown as Glue
  __wbg_set_wasm(instance.exports)
  ;(instance.exports as unknown as { __wbindgen_start(): void }).__wbindgen_start()
  const adapter = bindMigrationAwareSqlAdapterFactory(new PrismaPg({ connectionString: url }))
  const schema = await readFile(new URL('schema.prisma', prismaFolder), 'utf8')
  return Engine.new({ datamodels: [['schema.prisma', schema]] }, () => {}, adapter)
}

type Glue = { __wbg_set_wasm(exports: WebAssembly.Exports): void; SchemaEngine: typeof SchemaEngine }

/** The names of the migrations in `prisma/migrations`, in order. */
export async function migrationNames(): Promise<string[]> {
  const found = await readdir(new URL('migrations/', prismaFolder), { withFileTypes: true })
  return found.filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort()
}

/** `prisma/migrations` as the schema engine takes it. */
export async function migrationsList(): Promise<MigrationList> {
  const base = new URL('migrations/', prismaFolder)
  const names = await migrationNames()
  const read = (name: string) => readFile(new URL(`${name}/migration.sql`, base), 'utf8')
  return {
    baseDir: base.pathname,
    lockfile: { path: './migration_lock.toml', content: 'provider = "postgresql"\n' },
    shadowDbInitScript: '',
    migrationDirectories: await Promise.all(
      names.map(async (name) => ({
        path: name,
        migrationFile: { path: 'migration.sql', content: { tag: 'ok' as const, value: await read(name) } },
      })),
    ),
  }
}
