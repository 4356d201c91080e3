import { expect } from 'vitest'
import { type Block, shellIn } from './shell.ts'

/** The commands of a page of documentation, with the outputs that it shows, in one terminal. */

/** What differs each time: keys of rows and runs, tags of plans, access tokens, times. */
const changing = [
  /\b[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}\b/,
  /(?<= plan )[\w-]{22}$/,
  /\bgw_a_\w+/,
  /\b20\d\d-\d\d-\d\d(?:T[\d:.]+Z?)?/,
]
const anyChanging = new RegExp(changing.map(({ source }) => source).join('|'), 'gm')
const isTime = (text: string) => /^20\d\d-\d\d-\d\d/.test(text)

export type Step = {
  readonly commands: string
  readonly output: string
  readonly code: number
  readonly isPart: boolean
}

/** The last line of an output block may be the exit code. A block of commands without one writes nothing. */
export const stepsOf = (blocks: readonly Block[]): Step[] =>
  blocks.flatMap(({ info, text }, index): Step[] => {
    if (info !== 'sh') return []
    const next = blocks[index + 1]
    const shown = next?.info.startsWith('text') === true ? next : undefined
    const [, output = '', code = '0'] = /^(.*?)(?:exit code (\d)\n)?$/s.exec(shown?.text ?? '') ?? []
    return [{ commands: text, output, code: Number(code), isPart: shown?.info === 'text part' }]
  })

/**
 * @param state a file that keeps the exported variables
 * @param real what the page shows, such as an address, to what it is here
 */
export function openTerminal(folder: string, PATH: string, state: string, real: ReadonlyMap<string, string>) {
  /** What a page shows of what changes: later blocks use it. */
  const known = new Map<string, string>()

  function here(commands: string): string {
    let text = commands
    for (const [shown, value] of [...real, ...known]) text = text.replaceAll(shown, value)
    return text
  }

  function compare(shown: string, output: string): void {
    expect(output.replace(anyChanging, '...')).toBe(shown.replace(anyChanging, '...'))
    const values = output.match(anyChanging) ?? []
    for (const [index, inPage] of (shown.match(anyChanging) ?? []).entries()) {
      const value = values[index] ?? ''
      if (isTime(inPage)) continue
      // One id of the page is one id here.
      expect(known.get(inPage) ?? value).toBe(value)
      known.set(inPage, value)
    }
  }

  return {
    /** Commands with the values of this installation. Variables that earlier blocks exported are there. */
    here: (commands: string) => `exec 2>&1\n[ ! -f '${state}' ] || . '${state}'\n${here(commands)}`,
    /** Runs a block, and expects what the page shows. Exported variables are there for the next block. */
    async play({ commands, output: shown, code, isPart }: Step): Promise<void> {
      const keep = `trap "export -p > '${state}'" EXIT\n`
      const ended = await shellIn(folder)(keep + this.here(commands), { PATH })
      let output = ended.output
      for (const [inPage, value] of real) output = output.replaceAll(value, inPage)
      if (isPart) for (const line of shown.trimEnd().split('\n')) expect(output).toContain(line.trim())
      else compare(shown, output)
      expect(ended.code, output).toBe(code)
    },
  }
}
