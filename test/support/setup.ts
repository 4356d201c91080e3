import { afterAll, beforeEach } from 'vitest'
import { closeAll } from './at-end.ts'
import { renewName } from './name.ts'

// Registered before any hook of the test file, so it runs after all of them.
afterAll(closeAll)
beforeEach(renewName)
