import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'

/** The answer, or null when it is late. Other errors are thrown. */
export const ifInTime = <Found>(asked: Promise<Found>, withinMs?: number): Promise<Found | null> =>
  inTime(asked, withinMs).catch((error: unknown) => {
    if (error instanceof Problem && error.code === 'unavailable') return null
    throw error
  })
