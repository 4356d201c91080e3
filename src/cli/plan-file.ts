import { z } from 'zod'
import type { Result } from './deliver.ts'
import { UsageError } from './exit.ts'
import { writeOut } from './output.ts'
import { readSettings } from './text-file.ts'

/** The tags of reviewed plans, by file: `plan --out` writes them, `apply --plan-file` uses them. */

const form = z.object({
  version: z.literal(1),
  url: z.string(),
  /** `without`: variables that were not set. The apply, which has their values, is another document. */
  plans: z.array(z.object({ file: z.string(), tag: z.string(), without: z.array(z.string()).optional() })),
})

/** A file that was refused has no tag, so that it cannot be applied by the plan. @throws {UsageError} */
export function writePlans(path: string, url: string, results: readonly Result[]): void {
  const plans = results.flatMap(({ file, etag, parts }) => {
    const without = parts.flatMap(({ document }) => document.unset?.variables ?? [])
    const tag = etag?.replaceAll('"', '')
    return tag === undefined ? [] : [{ file, tag, ...(without.length > 0 && { without: [...new Set(without)] }) }]
  })
  writeOut(path, `${JSON.stringify({ version: 1, url, plans } satisfies z.input<typeof form>, null, 2)}\n`)
}

/** @returns the tag of a file. @throws {UsageError} when the plan file cannot be read, and for a file without a plan */
export async function readPlans(path: string): Promise<(file: string) => string> {
  const { settings } = await readSettings(path, form)
  const plans = new Map(settings.plans.map((plan) => [plan.file, plan]))
  return (file) => {
    const { tag, without } = plans.get(file) ?? {}
    if (tag === undefined) throw new UsageError(`${path} has no plan of ${file}: plan it, and review that plan.`)
    if (without === undefined) return tag
    const why = `it was planned without the values of: ${without.join(', ')}`
    throw new UsageError(
      `The plan of ${file} in ${path} cannot be applied, because ${why}. Plan it where they are set.`,
    )
  }
}
