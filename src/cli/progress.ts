import type { Watcher } from '../seed/seed.ts'

const width = 30
const minIntervalMs = 80

export const grouped = (count: number): string => count.toLocaleString('en-US')

/** Where it is shown: standard output, say. */
export type Screen = { readonly isTTY?: boolean | undefined; write(text: string): unknown }

/** A bar for the step under way and a line for each that is done; where nobody looks, the lines alone. */
export function progressBar(out: Screen): Watcher {
  let [step, begunMs, shownMs] = ['', 0, 0]
  const show = (text: string) => {
    if (out.isTTY) out.write(`\r\x1b[2K  ${step.padEnd(22)}${text}`)
  }
  return {
    begin(name) {
      step = name
      begunMs = performance.now()
      show('')
    },
    progress(done, of) {
      const nowMs = performance.now()
      if (nowMs - shownMs < minIntervalMs) return
      shownMs = nowMs
      const share = of === 0 ? 1 : done / of
      const filled = Math.round(share * width)
      show(`[${'#'.repeat(filled)}${'.'.repeat(width - filled)}] ${String(Math.floor(share * 100)).padStart(3)} %`)
    },
    end(rows) {
      const seconds = ((performance.now() - begunMs) / 1000).toFixed(1)
      const count = rows === undefined ? '' : grouped(rows)
      out.write(`${out.isTTY ? '\r\x1b[2K' : ''}  ${step.padEnd(22)}${count.padStart(10)}${seconds.padStart(8)} s\n`)
    },
  }
}
