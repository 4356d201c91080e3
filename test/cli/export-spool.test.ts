import { readdirSync } from 'node:fs'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Spool } from '../../src/cli/export/spool.ts'
import { freshFolder } from '../support/folder.ts'

/** Where an export keeps what it read. */

test('values are read as they were kept, at any place, while more are added', () => {
  const folder = freshFolder()
  vi.stubEnv('TMPDIR', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  const spool = new Spool()
  const valueAt = (index: number) => ({ index, text: `ü€😀 ${'x'.repeat((index * 7_919) % 5_000)}`, none: null })
  const kept = Array.from({ length: 2_000 }, (_, index) => {
    const read = spool.keep(valueAt(index))
    if (index % 400 === 0) expect(read()).toEqual(valueAt(index))
    return read
  })
  for (const index of [1_999, 0, 1_000, 1, 1_998]) expect(kept[index]?.()).toEqual(valueAt(index))
  expect(kept.map((read) => read())).toEqual(kept.map((_, index) => valueAt(index)))
  expect(readdirSync(folder)).toHaveLength(1)
  spool.close()
  expect(readdirSync(folder)).toEqual([])
})
