import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { reasonOf } from '../start-error.ts'
import type { Result } from './deliver.ts'
import { UsageError } from './exit.ts'
import { writeOut } from './output.ts'

/** The tags of reviewed plans, by file: `plan --out` writes them, `apply --plan-file` uses them. */

const form = z.object({
  version: z.literal(1),
  url: z.string(),
  plans: z.array(z.object({ file: z.string(), tag: z.string() })).max(10_000),
})

/** A file that was refused has no tag, so that it cannot be applied by the plan. @throws {UsageError} */
export function writePlans(path: string, url: string, results: readonly Result[]): void {
  const plans = results.flatMap(({ file, etag }) => (etag === null ? [] : [{ file, tag: etag.replaceAll('"', '') }]))
  writeOut(path, `${JSON.stringify({ version: 1, url, plans } satisfies z.input<typeof form>, null, 2)}\n`)
}

/** @returns the tag of a file. @throws {UsageError} when the plan file cannot be read, and for a file without a plan */
export function readPlans(path: string): (file: string) => string {
  const tags = new Map(parse(path).plans.map(({ file, tag }) => [file, tag]))
  return (file) => {
    const tag = tags.get(file)
    if (tag === undefined) throw new UsageError(`${path} has no plan of ${file}: plan it, and review that plan.`)
    return tag
  }
}

function parse(path: string): z.output<typeof form> {
  try {
    return form.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error) throw new UsageError(`${path} cannot be read (${reasonOf(error)}).`)
    throw new UsageError(`${path} is not a file that "plan --out" wrote.`)
  }
}
