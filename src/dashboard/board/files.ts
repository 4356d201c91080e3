import { readdirSync } from 'node:fs'
import { extname, join } from 'node:path'

export type StaticFile = { readonly path: string; readonly type: string; readonly caching: string }

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** `main.f10757109b.js`: a changed file gets a new name. */
const hashed = /\.[0-9a-f]{8,}\.\w+$/

/** The files of a folder that may be served, by their paths in it. A request is looked up here; no path that a client sent is opened. */
export const listFiles = (folder: string): ReadonlyMap<string, StaticFile> =>
  new Map(
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap((name) => {
      const type = types[extname(name)]
      const caching = hashed.test(name) ? 'private, max-age=31536000, immutable' : 'private, no-cache'
      return type === undefined ? [] : [[name, { path: join(folder, name), type, caching }] as const]
    }),
  )
