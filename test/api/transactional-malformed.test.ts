import { describe, expect, test } from 'vitest'
import { applyPath, installation, named } from '../support/kit.ts'

/** Requests that are refused before their fields are checked. */

const there = await installation({ workers: 'none', applyWaitMs: 2_000 })
const body = await named('oauth2', 'new')

const refused = (sent: unknown, options = {}, query = '') =>
  there.refused(400, () => there.admin.put(`${applyPath}${query}`, sent, options))

describe('a body that is not JSON', () => {
  const secret = 'hunter2hunter2'
  test.each([
    ['nothing', ''],
    ['half of it', `{"provider": {"client_secret": "${secret}"`],
    ['a word', `{"client_secret": ${secret}}`],
    ['a text that does not end', `{"client_secret": "${secret}`],
    ['a comma too many', `{"client_secret": "${secret}",}`],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22])],
    ['UTF-16', Buffer.from('{}', 'utf16le')],
  ])('%s', async (_, sent) => {
    const { json, text } = await refused(sent)
    expect(json).toEqual({ non_field_errors: [expect.stringMatching(/^The body is /)], code: 'invalid_json' })
    expect(text).not.toContain('hunter2')
  })
})

describe('what is not understood is refused by name, and nothing is applied', () => {
  test.each([
    ['?dryrun=true', { dryrun: ['Unknown parameter. Did you mean dry_run?'] }],
    ['?dry_run', { dry_run: ['Must be true or false.'] }],
    ['?x=1&x=2', { x: ['Unknown parameter.'] }],
    ['?__proto__=1', { ['__proto__']: ['Unknown parameter.'] }],
  ])('the query %s', async (query, fields) => {
    expect((await refused(body, {}, query)).json).toEqual({ ...fields, code: 'invalid' })
  })

  test.each(['"etag"', 'W/"x"', '*, "x"', ''])('If-None-Match: %s', async (ifNoneMatch) => {
    const { json } = await refused(body, { ifNoneMatch })
    expect(json).toEqual({ 'If-None-Match': [expect.stringContaining('Only * is taken')], code: 'invalid' })
  })
})
