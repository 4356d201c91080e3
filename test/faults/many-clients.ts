import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { freshFolder } from '../support/folder.ts'
import { run } from '../support/processes.ts'
import type { Sent, Target } from './clients.ts'
import type { Load } from './load.ts'

/** Sends by a process of its own, whose end is waited for. */
export async function sendMany({ url, token }: Target, load: Omit<Load, 'url' | 'token' | 'file'>): Promise<Sent[]> {
  const file = join(freshFolder(), 'sent.json')
  const asked: Load = { url, token, file, ...load }
  const { exited } = run('test/faults/load.ts', { args: [JSON.stringify(asked)] })
  expect(await exited).toEqual({ code: 0, signal: null })
  return JSON.parse(readFileSync(file, 'utf8'))
}
