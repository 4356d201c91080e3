import { beforeAll, describe, test } from 'vitest'
import { applyPath } from '../../support/asker.ts'
import { type Installation, installation } from '../../support/installation.ts'
import { type Present, present, submitted, toldApplied } from './apply-cases.ts'
import { rowsOf } from './matrix.ts'
import { type Stage, stage } from './trial.ts'

let there: Installation
let on: Stage
let known: Present
beforeAll(async () => {
  there = await installation()
  on = stage(there, toldApplied, ({ whose }) => whose === 'new' || whose === 'there')
  known = await present(there)
})

describe('who may apply applications', async () => {
  test.each(await rowsOf(`PUT ${applyPath}`))('%s', (_, row) => on.try(row, submitted(there, known)))
})
