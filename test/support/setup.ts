import { afterAll } from 'vitest'
import { closeAll } from './at-end.ts'

// Registered before any hook of the test file, so it runs after all of them.
afterAll(closeAll)
