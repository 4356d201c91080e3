import { describe, expect, test } from 'vitest'
import { type Answer, answered, applyPath, installation, named } from '../../support/kit.ts'
import { castFor } from './actors.ts'
import { toldApplied } from './apply-cases.ts'
import { ownerRowsOf, type Row, readOwnerMatrix } from './matrix.ts'
import { appliedOf, blueprintOf, deletedOf, guessed, lookedUp, readOf, targets, tokenOf } from './owner-cases.ts'
import { stage } from './trial.ts'

/** Rows of owners, look-ups, and what a caller may not view. */

const [mine, theirs] = ['matrix-one', 'matrix-two']
const there = await installation()
const on = stage(there)
const applying = stage(there, toldApplied)
for (const [name, owner] of [
  [mine, 'team-one'],
  [theirs, 'team-two'],
] as const) {
  await answered(200, there.admin.put(applyPath, await named('rac', name), { owner }))
}
const known = await targets(there, await there.make.user())

const isOfOwners = ({ cells }: Row) => cells['other owner'] !== undefined
const rowsOf = (...operations: string[]) => ownerRowsOf(isOfOwners, ...operations)
const documents = 'PUT /api/v3/blueprints/'

test('the columns of owners are those of the actors', async () => {
  const { actors, rows } = await readOwnerMatrix()
  expect([...actors.keys()]).toEqual(castFor(there).ownerColumns)
  expect(rows.filter(isOfOwners).length).toBeGreaterThan(10)
  expect(rows.length).toBeGreaterThan(60)
})

const shows = ({ text }: Answer) => {
  const [one, two] = [mine, theirs].map((name) => text.includes(`"${name}"`))
  return one ? (two ? 'all' : 'one') : two ? 'another' : 'none'
}

describe('who may read rows of an owner', async () => {
  test.each(await rowsOf('GET /api/v3/core/applications/', 'GET /api/v3/providers/'))('%s', (_, row) =>
    on.try(row, async (row, actor) => {
      const ask = await readOf(mine)(row, actor)
      return row.operation.includes(':') ? ask : { ...ask, url: `${ask.url}?page_size=100`, shows }
    }),
  )
})

describe('who may apply and delete rows of an owner', async () => {
  test.each(await rowsOf(`PUT ${applyPath}`))('%s', (_, row) => applying.try(row, appliedOf(there)))
  test.each(await rowsOf('DELETE /api/v3/core/applications/'))('%s', (_, row) => on.try(row, deletedOf(there)))
  test.each(await rowsOf(documents))('%s', (_, row) => applying.try(row, blueprintOf(there)))
})

describe('who may look rows up', async () => {
  const rows = await ownerRowsOf((row) => row.member === 'entries', documents)
  test.each(rows)('%s', (_, row) => applying.try(row, lookedUp(known)))
})

describe('who may know what a row has', async () => {
  const rows = await ownerRowsOf((row) => !isOfOwners(row) && row.member !== 'entries', documents)
  test.each(rows)('%s', (_, row) => on.try(row, guessed(there)))
  test.each(await ownerRowsOf(() => true, 'GET /api/v3/core/tokens/', 'PATCH /api/v3/core/tokens/'))('%s', (_, row) =>
    on.try(row, tokenOf(there)),
  )
})
