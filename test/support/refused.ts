import { expect } from 'vitest'
import type { Answer } from './asker.ts'
import { objects } from './contents.ts'
import type { Installation } from './installation.ts'

/** Asks, and expects a refusal that leaves every object as it was. */
export async function refusedBy(
  there: Pick<Installation, 'db'>,
  status: number,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  const before = await objects(there.db)
  const answer = await ask()
  expect([answer.status, answer.text]).toEqual([status, expect.any(String)])
  expect(await objects(there.db)).toEqual(before)
  return answer
}
