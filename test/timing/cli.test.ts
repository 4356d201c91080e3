import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freshFolder, named, run } from '../support/kit.ts'

/** How long the program takes. The limits are for a machine that does nothing else, so the best of several counts. */

async function bestOf(tries: number, args: string[]): Promise<number> {
  const timesMs: number[] = []
  for (let count = 0; count < tries; count += 1) {
    const startMs = performance.now()
    const { code } = await run('bin/gatewright.mjs', { args }).exited
    timesMs.push(performance.now() - startMs)
    expect(code).toBe(0)
  }
  return Math.min(...timesMs)
}

test('--help answers in 150 ms', async () => {
  expect(await bestOf(10, ['--help'])).toBeLessThan(150)
})

test('validate of 1 000 files takes at most 4 s', async () => {
  const folder = freshFolder()
  for (let count = 0; count < 1_000; count += 1) {
    const slug = `app-${count}`
    writeFileSync(join(folder, `${slug}.json`), JSON.stringify(await named('oauth2', slug)))
  }
  expect(await bestOf(4, ['validate', folder])).toBeLessThan(4_000)
})
