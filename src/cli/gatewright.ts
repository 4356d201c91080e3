import { runGatewright } from './main.ts'

/** The program `gatewright`. `bin/gatewright.mjs` starts it. */
await runGatewright(process.argv.slice(2))
