import fc from 'fast-check'

// `npm test` draws the same values each time: it fails because of a change, never because of luck. `npm run random` draws
// new values, and many more.
fc.configureGlobal({ seed: 20_261_123 })
