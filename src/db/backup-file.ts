import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { z } from 'zod'
import { attempt } from '../attempt.ts'
import { reasonOf, StartError } from '../start-error.ts'
import { migrationNames } from './migrations.ts'

/**
 * The form of a backup of `npm run backup`, compressed by gzip: lines of JSON, and rows in the text format of COPY
 * (docs/adr/0126-a-backup-is-rows.md). `zcat FILE | head -1` shows the first line, which has no secret.
 */

export const backupFormat = 1

/** @property migrations those that the rows need, by name */
const header = z.object({
  gatewrightBackup: z.literal(backupFormat),
  version: z.string(),
  madeAt: z.iso.datetime(),
  migrations: z.array(z.string()).min(1),
  hasKey: z.boolean(),
})
export type BackupHeader = z.output<typeof header>

const newerHeader = z.object({ gatewrightBackup: z.int().gt(backupFormat), version: z.string() })

/** The second line, when there is a key. */
const key = z.object({ secretKey: z.string().min(1) })

/** The line before the rows of a table. They end with a line `\.`: no row is written like that. */
const table = z.object({ table: z.string(), columns: z.array(z.string()).min(1) })

/** The last line: the number of rows of each table, and how far each sequence has come. */
const trailer = z.object({ rows: z.record(z.string(), z.int()), sequences: z.record(z.string(), z.string()) })

export type RowsOfTables = z.output<typeof trailer>['rows']

/** `12,345 rows of 20 tables` */
export function inWords(rows: RowsOfTables): string {
  const counts = Object.values(rows)
  return `${counts.reduce((sum, count) => sum + count, 0).toLocaleString('en-US')} rows of ${counts.length} tables`
}

export const endOfRows = '\\.\n'
const newline = '\n'.charCodeAt(0)
const longestLine = 1_000_000

export type Backup = Awaited<ReturnType<typeof openBackup>>

/**
 * Opens a backup and reads its beginning. Only a part of it is in memory at a time.
 *
 * @returns `next` reads the next table, whose `rows` must be read then, or the trailer; `end` reads to the end, where gzip has its
 * checksum; `damaged` makes the error of what is wrong with the file
 * @throws {StartError} for a file that cannot be read, is damaged, or is of a newer version; so do the methods
 */
export async function openBackup(path: string) {
  const file = createReadStream(path)
  await once(file, 'open').catch((error: unknown) => {
    throw new StartError(`${path} cannot be read (${reasonOf(error)}).`, { cause: error })
  })
  // An error of the file reaches the reader through `unzipped`.
  const unzipped = pipeline(file, createGunzip({ chunkSize: 65_536 }), () => {})
  const damaged = (why: string) => {
    unzipped.destroy()
    return new StartError(`${path} is damaged, or is no backup of npm run backup: ${why}.`)
  }
  const chunks: AsyncIterator<Buffer> = unzipped[Symbol.asyncIterator]()
  const nextChunk = () =>
    chunks.next().catch((error: unknown) => {
      throw damaged(error instanceof Error ? error.message : String(error))
    })
  let rest: Buffer = Buffer.alloc(0)

  async function more(): Promise<void> {
    const { done, value } = await nextChunk()
    if (done) throw damaged('its end is missing')
    rest = Buffer.concat([rest, value])
  }

  async function line<Value>(schema: z.ZodType<Value>): Promise<Value> {
    while (!rest.includes(newline)) {
      if (rest.length > longestLine) throw damaged('a line is too long')
      await more()
    }
    const end = rest.indexOf(newline)
    const { data } = schema.safeParse(attempt(() => JSON.parse(rest.toString('utf8', 0, end))))
    if (data === undefined) throw damaged('a line has another form')
    rest = rest.subarray(end + 1)
    return data
  }

  async function* rows(): AsyncGenerator<Buffer> {
    while (!rest.subarray(0, endOfRows.length).equals(Buffer.from(endOfRows))) {
      const end = rest.indexOf(`\n${endOfRows}`)
      const whole = (end === -1 ? rest.lastIndexOf(newline) : end) + 1
      if (whole > 0) yield rest.subarray(0, whole)
      rest = rest.subarray(whole)
      if (end === -1) await more()
    }
    rest = rest.subarray(endOfRows.length)
  }

  const known = await migrationNames()
  const first = await line(z.union([header, newerHeader]))
  if (!('madeAt' in first) || first.migrations.some((each) => !known.includes(each))) {
    unzipped.destroy()
    throw new StartError(
      `${path} is of a newer version of Gatewright (${first.version}): restore it with that version, or a later one.`,
    )
  }
  const secretKey = first.hasKey ? (await line(key)).secretKey : null
  const end = async () => {
    const { done } = await nextChunk()
    if (!done || rest.length > 0) throw damaged('something follows its end')
  }
  return { header: first, secretKey, next: () => line(z.union([table, trailer])), rows, end, damaged }
}
