import { describe, inject, test } from 'vitest'
import { applyPath, installation } from '../../support/kit.ts'
import { present, submitted, toldApplied } from './apply-cases.ts'
import { type Row, rowsOf } from './matrix.ts'
import { stage } from './trial.ts'

const there = await installation()
const on = stage(there, toldApplied, ({ whose }) => whose === 'new' || whose === 'there')
const known = await present(there)

const all = await rowsOf(`PUT ${applyPath}`)

/** One of the fields of each kind for which the same is needed and expected; not the same field of each kind. */
function oneOfEach(): typeof all {
  const alike = Map.groupBy(all, ([, { whose, value, needs, cells }]: readonly [string, Row]) =>
    JSON.stringify([whose, value, needs, cells]),
  )
  return [...alike.values()].flatMap((rows, index) => rows.slice(index % rows.length).slice(0, 1))
}

describe('who may apply applications', async () => {
  // `npm run random` plays the whole table.
  test.each(inject('rounds') > 1 ? all : oneOfEach())('%s', (_, row) => on.try(row, submitted(there, known)))
})
