import { execFile } from 'node:child_process'
import { inject } from 'vitest'

/** Each sample of a scrape by its name and labels. */
export type Samples = ReadonlyMap<string, number>

export function samplesOf(text: string): Samples {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

/** The samples of one metric. */
export const of = (samples: Samples, name: string): Record<string, number> =>
  Object.fromEntries([...samples].filter(([key]) => key.startsWith(`${name}{`)))

/** Those that are not 0. */
export const counted = (samples: Samples, name: string): Record<string, number> =>
  Object.fromEntries(Object.entries(of(samples, name)).filter(([, value]) => value !== 0))

/** The names under which samples stand in a scrape: of a histogram with `_bucket`, `_sum` and `_count`. */
export const namesIn = (text: string): ReadonlySet<string> =>
  new Set([...samplesOf(text).keys()].map((key) => key.replace(/\{.*$/, '')))

/** Call it under `describe.runIf(needs('promtool'))`. @returns its exit code, and what it wrote */
export function promtool(
  args: readonly string[],
  { input = '', cwd = '.' } = {},
): Promise<{ code: number; output: string }> {
  const { promtool: program } = inject('servers')
  if (program === null)
    throw new Error("promtool is not installed: put these tests under describe.runIf(needs('promtool'))")
  return new Promise((resolve) => {
    const child = execFile(program, args, { cwd }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}` }),
    )
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}
