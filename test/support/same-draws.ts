import fc from 'fast-check'

// `npm test` and CI draw the same values each time: they fail because of a change, never because of luck. `npm run random`
// draws new values.
fc.configureGlobal({ seed: 20_261_123 })
