import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Load, Measured } from './measure.ts'

/**
 * Measures in a child process, so that the measuring code does not share an event loop with the measured code.
 *
 * @param file beside this one; it takes one argument, JSON, and prints a `Measured` as JSON
 */
export async function measureIn<Task extends Load>(file: string, task: Task): Promise<Measured> {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const timeout = (task.seconds + 60) * 1_000
  const { stdout } = await promisify(execFile)(process.execPath, [path, JSON.stringify(task)], { timeout })
  const measured: Measured = JSON.parse(stdout)
  if (measured.count === 0) throw new Error(`${file}: nothing succeeded; the first failure: ${measured.failure}`)
  return measured
}
