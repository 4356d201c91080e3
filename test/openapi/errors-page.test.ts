import { expect, test } from 'vitest'
import { errorsPage } from '../../tools/docs/errors.ts'

test('docs/errors.md is up to date: run this file with -u to write it', async () => {
  await expect(errorsPage()).toMatchFileSnapshot('../../docs/errors.md')
})
