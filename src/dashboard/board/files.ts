import { readdirSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'

export type StaticFile = { readonly path: string; readonly type: string; readonly caching: string }

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
}

/** `main.f10757109b.js`: a changed file gets a new name. */
const hashed = /\.[0-9a-f]{8,}\.\w+$/

/**
 * The files of a folder that may be served. A request is looked up in this list; no path that a client sent is opened.
 *
 * @returns `js/main.f10757109b.js` -> file
 */
export function listFiles(folder: string): ReadonlyMap<string, StaticFile> {
  const files = new Map<string, StaticFile>()
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = types[extname(entry.name)]
    if (!entry.isFile() || type === undefined) continue
    const path = join(entry.parentPath, entry.name)
    const caching = hashed.test(entry.name) ? 'private, max-age=31536000, immutable' : 'private, no-cache'
    files.set(relative(folder, path).split(sep).join('/'), { path, type, caching })
  }
  return files
}
