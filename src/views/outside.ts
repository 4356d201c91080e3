import type { Db } from '../db/client.ts'

/** How many objects are not as their last recorded change left them, as the last daily look found them. */
export type OutsideCount = {
  readonly object: 'application' | 'provider'
  readonly how: 'changed' | 'deleted'
  readonly count: number
}

const application = 'service_core.application'

/** One for each combination. */
export async function countOutside(db: Db): Promise<OutsideCount[]> {
  const found = await db.outsideChange.groupBy({ by: ['model', 'isDeleted'], _count: true })
  return (['application', 'provider'] as const).flatMap((object) =>
    (['changed', 'deleted'] as const).map((how) => {
      const own = found.filter(
        ({ model, isDeleted }) =>
          (model === application) === (object === 'application') && isDeleted === (how === 'deleted'),
      )
      return { object, how, count: own.reduce((sum, { _count }) => sum + _count, 0) }
    }),
  )
}
