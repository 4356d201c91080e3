import { describe, test } from 'vitest'
import { installation } from '../../support/installation.ts'
import { rowsOf } from './matrix.ts'
import { changed, created, owners, read, removed, viewed } from './token-cases.ts'
import { stage } from './trial.ts'

const there = await installation({ workers: 'none' })
const on = stage(there)
const crowd = await owners(there)

describe('who may create tokens', async () => {
  test.each(await rowsOf('POST /api/v3/core/tokens/'))('%s', (_, row) => on.try(row, created(crowd)))
})

describe('who may change tokens', async () => {
  test.each(await rowsOf('PATCH /api/v3/core/tokens/'))('%s', (_, row) => on.try(row, changed(there, crowd)))
})

describe('who may delete tokens', async () => {
  test.each(await rowsOf('DELETE /api/v3/core/tokens/'))('%s', (_, row) => on.try(row, removed(there, crowd)))
})

describe('who may read a token', async () => {
  const rows = await rowsOf('GET /api/v3/core/tokens/:identifier/')
  test.each(rows.filter(([, { operation }]) => !operation.includes('view_key')))('%s', (_, row) =>
    on.try(row, read(there, crowd)),
  )
})

test.each(await rowsOf('GET /api/v3/core/tokens/:identifier/view_key/'))('who may view a key: %s', (_, row) =>
  on.try(row, viewed(there, crowd)),
)
