import { prismaTransaction } from '../src/db/engine-tx.ts'
import { runProgram } from '../src/start-error.ts'
import { runWorker } from '../workers/blueprint.ts'

/** The worker without src/db/pipeline.ts, to measure the gain of that file. */
await runProgram(() => runWorker(({ db }) => prismaTransaction(db)))
