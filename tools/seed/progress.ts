const barWidth = 30
const minIntervalMs = 80

/** Gets each step: its name, how far it is, and at its end the number of rows, if it writes any. */
export type Progress = {
  begin(step: string): void
  progress(done: number, of: number): void
  end(rows?: number): void
  /** Something the operator should know. */
  note(sentence: string): void
}

export const grouped = (count: number): string => count.toLocaleString('en-US')

/** Where it is printed: standard output, say. */
export type Screen = { readonly isTTY?: boolean | undefined; write(text: string): unknown }

/** A line for each finished step, and on a terminal a bar for the running one. */
export function progressBar(out: Screen): Progress {
  let [step, startMs, shownMs] = ['', 0, 0]
  const show = (text: string) => {
    if (out.isTTY) out.write(`\r\x1b[2K  ${step.padEnd(22)}${text}`)
  }
  return {
    begin(name) {
      step = name
      startMs = performance.now()
      show('')
    },
    progress(done, of) {
      const nowMs = performance.now()
      if (nowMs - shownMs < minIntervalMs) return
      shownMs = nowMs
      const share = of === 0 ? 1 : done / of
      const filled = Math.round(share * barWidth)
      show(`[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}] ${String(Math.floor(share * 100)).padStart(3)} %`)
    },
    end(rows) {
      const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
      const count = rows === undefined ? '' : grouped(rows)
      out.write(`${out.isTTY ? '\r\x1b[2K' : ''}  ${step.padEnd(22)}${count.padStart(10)}${seconds.padStart(8)} s\n`)
    },
    note(sentence) {
      out.write(`  ${sentence}\n`)
    },
  }
}
