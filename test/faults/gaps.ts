import { readdirSync, readFileSync } from 'node:fs'

/** What one file of tests did. */
type Ran = { readonly file: string; readonly errors: readonly string[]; readonly states: readonly string[] }

export const testFiles = (): string[] =>
  readdirSync(import.meta.dirname)
    .filter((file) => file.endsWith('.test.ts'))
    .sort()

/**
 * What did not run. A table without a row for it looks as if all were well.
 *
 * @param files all that are there
 * @param others errors outside of any test
 */
export function gapsIn(ran: readonly Ran[], files: readonly string[], others: readonly string[]): string[] {
  const byFile = new Map(ran.map((each) => [each.file, each]))
  return [
    ...files.flatMap((file) => {
      const { errors, states } = byFile.get(file) ?? { errors: ['it was not loaded'], states: [] }
      const skipped = states.filter((state) => state !== 'passed' && state !== 'failed').length
      return [
        ...errors.map((error) => `${file}: ${error}`),
        ...(errors.length === 0 && states.length === 0 ? [`${file}: it has no test`] : []),
        ...(skipped > 0 ? [`${file}: ${skipped} of ${states.length} tests did not run`] : []),
      ]
    }),
    ...others,
  ]
}

/** The name of a test, as the table calls it. */
export const rowName = (fullName: string): string => fullName.replaceAll('|', '/')

/** The rows that docs/reliability.md promises. One that holds with several queues stands for a test with each. */
export function promisedRows(): string[] {
  const text = readFileSync(new URL('../../docs/reliability.md', import.meta.url), 'utf8')
  const [, table = ''] = /^\| Fault \|[^\n]*\n\| --- [^\n]*\n((?:\|[^\n]*\n)+)/m.exec(text) ?? []
  return [...table.matchAll(/^\| (.+?) \| (?:(.+?) )?\|$/gm)].flatMap(([, name = '', queues]) =>
    queues === undefined ? [name] : queues.split(', ').map((queue) => `queue on ${queue} > ${name}`),
  )
}
