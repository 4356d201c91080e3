import { Problem } from '../errors.ts'

/** For what is read in time or left out. What else goes wrong is no matter of time. */
export function nullWhenLate(error: unknown): null {
  if (error instanceof Problem && error.code === 'unavailable') return null
  throw error
}
