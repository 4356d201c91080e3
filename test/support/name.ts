import { randomUUID } from 'node:crypto'

/** A name for the objects of a test: another in each test. */
export let name = ''

/** Takes another name, for a test that needs one meanwhile. */
export function renewName(): void {
  name = `n-${randomUUID().slice(0, 8)}`
}
