import { expect, test } from 'vitest'
import { applyPath, counts, type Installation, installation, type Kind, named } from '../support/kit.ts'

/** Submissions with many errors, and the answer with all of them. */

export type Wrong = {
  kind: Kind
  /** The name of application and provider; default: an unused name. */
  name?: string
  app?: Record<string, unknown>
  provider?: Record<string, unknown>
  /** Fields beside `app` and `provider`, or in their place. */
  others?: Record<string, unknown>
}

/** Sends the example of a kind with these fields, and checks that nothing is written. */
export async function refusal(there: Installation, { kind, name = 'new', app = {}, provider = {}, others }: Wrong) {
  const body = await named(kind, name, { app, provider })
  const before = await counts(there.db)
  const { status, json } = await there.admin.put(applyPath, raw({ ...body, ...others }))
  expect(await counts(there.db)).toEqual(before)
  return { status, json }
}

/** An installation in which these examples are there already: `scim-there` and so on. */
export async function installationWith(...kinds: Kind[]): Promise<Installation> {
  const there = await installation()
  for (const kind of kinds) {
    const answer = await there.admin.submit(kind, `${kind}-there`)
    expect(answer).toMatchObject({ status: 200, json: { applied: true } })
  }
  return there
}

/** JSON that JavaScript cannot write. */
const raw = (body: unknown) =>
  JSON.stringify(body)
    .replaceAll('"PROTO"', '"__proto__"')
    .replaceAll('"HUGE"', '1e400')
    .replaceAll('"-HUGE"', '-1e400')

/** @param there called when the tests run */
export function testRefusals(
  there: () => Installation,
  cases: Readonly<Record<string, Wrong & { says: object }>>,
): void {
  test.each(Object.entries(cases))('%s', async (_, { says, ...wrong }) => {
    expect(await refusal(there(), wrong)).toEqual({ status: 400, json: { ...says, code: 'invalid' } })
  })
}

/** The key of no row. */
export const none = '6f7e0000-0000-4000-8000-00000000ffff'

export const required = ['This field is required.']
export const noFlow = [`There is no flow with the key ${none}.`]
export const noKeyPair = [`There is no certificatekeypair with the key ${none}.`]
export const notBoolean = 'Must be true or false.'
export const oneOf = expect.stringMatching(/^Must be one of: /)
export const whenDomain = ['May not be empty when mode is forward_domain.']
export const nameOfScim = ['"scim-there" is the name of a provider scim: choose another.']
