import type { Db } from '../db/client.ts'
import { announce, type KnownProcess, readProcesses, silentOnes } from '../db/presence.ts'
import { runFormat } from '../runs/format.ts'
import type { Consumer } from './consumer.ts'

/** The worker processes of an installation. */

/** Says that this worker is there, until it is stopped. @param slots how many jobs it takes at once */
export const announceWorker = (db: Db, consumer: Pick<Consumer, 'busy' | 'hasTaken'>, slots: number) =>
  announce(db, 'workers', runFormat, { slots: () => slots, busy: consumer.busy, hasTaken: consumer.hasTaken })

export type KnownWorker = KnownProcess

export const readWorkers = (db: Db): Promise<KnownWorker[]> => readProcesses(db, 'workers')

export const silentWorkers = (workers: readonly KnownWorker[]): string => silentOnes(workers, 'worker')
