import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { plainEnvironment } from './environment.ts'

/** The blocks of a page of documentation, and a shell that runs them. */

export type Block = {
  /** The words after the fence: `sh`, or `text part`. */
  readonly info: string
  readonly text: string
}

/** All fenced blocks of a Markdown page, in their order. */
export const blocksOf = (page: string): Block[] =>
  [...page.matchAll(/^```([^\n`]*)\n(.*?)^```$/gms)].map(([, info = '', content = '']) => ({ info, text: content }))

export type Ended = { readonly code: number | null; readonly output: string; readonly errors: string }

/** A command of a page ends within this time. */
const longestMs = 60_000

/** A shell that ends at the first command that fails, and on a variable that is not set. */
export function shellIn(folder: string) {
  return async (commands: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> => {
    const child = spawn('/bin/sh', ['-euc', commands], {
      cwd: folder,
      env: { ...plainEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: longestMs,
    })
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
    return { code, output, errors }
  }
}
