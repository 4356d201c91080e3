import { beforeAll, describe, test } from 'vitest'
import { type Installation, installation } from '../../support/installation.ts'
import { changed, created, type Scenery, scenery } from './group-cases.ts'
import { rowsOf } from './matrix.ts'
import { type Stage, stage } from './trial.ts'

let there: Installation
let on: Stage
let props: Scenery
beforeAll(async () => {
  there = await installation({ workers: 'none' })
  on = stage(there)
  props = await scenery(there)
})

describe('who may create groups', async () => {
  test.each(await rowsOf('POST /api/v3/core/groups/'))('%s', (_, row) => on.try(row, created(props)))
})

describe('who may change groups', async () => {
  test.each(await rowsOf('PATCH /api/v3/core/groups/'))('%s', (_, row) => on.try(row, changed(there, props)))
})
