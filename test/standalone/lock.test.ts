import { expect, test } from 'vitest'
import { lock } from '../../src/standalone/lock.ts'
import { StartError } from '../../src/start-error.ts'
import { atEnd, freshFolder, isAlive, run } from '../support/kit.ts'

/** Another process that holds the lock of this folder, and its child. */
async function holder(folder: string) {
  const other = run('test/standalone/locked.ts', { args: [folder] })
  const child = Number((await other.line(/^locked, child (\d+)/))[1])
  atEnd(() => void (isAlive(child) && process.kill(child, 'SIGKILL')))
  return { other, child }
}

test('a second lock is refused in a sentence that names the process of the first', async () => {
  const folder = freshFolder()
  const { other } = await holder(folder)
  expect(() => lock(folder)).toThrow(
    new StartError(
      `Gatewright already runs on ${folder} (process ${other.pid}): stop that one first, or choose another DATA_DIR.`,
    ),
  )
  await other.kill()
})

test('a released lock is free at once', async () => {
  const folder = freshFolder()
  lock(folder)()
  const { other } = await holder(folder)
  expect(await other.kill()).toEqual({ code: null, signal: 'SIGKILL' })
})

test('the lock of a killed process is free at once, although its child lives on', async () => {
  const folder = freshFolder()
  const { other, child } = await holder(folder)
  await other.kill()
  const release = lock(folder)
  expect(isAlive(child)).toBe(true)
  expect(() => lock(folder)).toThrow(`(process ${process.pid})`)
  release()
})

test('each folder has a lock of its own', () => {
  const [one, other] = [freshFolder(), freshFolder()]
  const release = lock(one)
  expect(lock(other)).toBeTypeOf('function')
  release()
})
