import { describe, test } from 'vitest'
import { installation } from '../../support/installation.ts'
import { changed, created, scenery } from './group-cases.ts'
import { rowsOf } from './matrix.ts'
import { stage } from './trial.ts'

const there = await installation({ workers: 'none' })
const on = stage(there)
const props = await scenery(there)

describe('who may create groups', async () => {
  test.each(await rowsOf('POST /api/v3/core/groups/'))('%s', (_, row) => on.try(row, created(props)))
})

describe('who may change groups', async () => {
  test.each(await rowsOf('PATCH /api/v3/core/groups/'))('%s', (_, row) => on.try(row, changed(there, props)))
})
