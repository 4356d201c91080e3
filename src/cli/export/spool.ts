import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { reasonOf } from '../../start-error.ts'
import { UsageError } from '../exit.ts'

/** Values on the disk, for more of them than memory holds. They are written one after the other, and read at any place. */

/** The bytes that are written at once. */
const chunkBytes = 1_048_576

/** Reads a value again. */
export type Kept<Value> = () => Value

export class Spool {
  readonly #folder: string
  readonly #file: number
  #size = 0
  #pending: Buffer[] = []
  #pendingBytes = 0
  readonly #atExit = () => this.close()

  /** @throws {UsageError} where temporary files cannot be made */
  constructor() {
    try {
      this.#folder = mkdtempSync(join(tmpdir(), 'gatewright-export-'))
      this.#file = openSync(join(this.#folder, 'rows'), 'wx+', 0o600)
    } catch (error) {
      throw noPlace(error)
    }
    process.once('exit', this.#atExit)
  }

  /** @param value a value of JSON @throws {UsageError} when the disk is full */
  keep<Value>(value: Value): Kept<Value> {
    const bytes = Buffer.from(JSON.stringify(value))
    const at = this.#size + this.#pendingBytes
    this.#pending.push(bytes)
    this.#pendingBytes += bytes.length
    if (this.#pendingBytes >= chunkBytes) this.#flush()
    const { length } = bytes
    return () => JSON.parse(this.#read(at, length))
  }

  #read(at: number, length: number): string {
    if (at + length > this.#size) this.#flush()
    const bytes = Buffer.allocUnsafe(length)
    for (let read = 0; read < length; ) {
      const count = readSync(this.#file, bytes, read, length - read, at + read)
      if (count === 0) throw new Error('a temporary file is shorter than it was')
      read += count
    }
    return bytes.toString('utf8')
  }

  #flush(): void {
    const bytes = Buffer.concat(this.#pending)
    try {
      for (let written = 0; written < bytes.length; )
        written += writeSync(this.#file, bytes, written, bytes.length - written, this.#size + written)
    } catch (error) {
      throw noPlace(error)
    }
    this.#size += bytes.length
    this.#pending = []
    this.#pendingBytes = 0
  }

  /** Removes the file: nothing can be read afterwards. */
  close(): void {
    process.off('exit', this.#atExit)
    closeSync(this.#file)
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

const noPlace = (error: unknown): UsageError =>
  new UsageError(
    `What is exported cannot be kept in ${tmpdir()} (${reasonOf(error)}). TMPDIR names another place for temporary files.`,
  )
