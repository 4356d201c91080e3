import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'

/** What is read in time, or else null. What else goes wrong is no matter of time. */
export const ifInTime = <Found>(asked: Promise<Found>, withinMs?: number): Promise<Found | null> =>
  inTime(asked, withinMs).catch((error: unknown) => {
    if (error instanceof Problem && error.code === 'unavailable') return null
    throw error
  })
