import { runGatewright } from './main.ts'

/** `npm run apply -- FILE.yaml`: `gatewright apply`, by the name from before there was the program. */
await runGatewright(['apply', ...process.argv.slice(2)])
