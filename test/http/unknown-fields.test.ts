import { expect, test } from 'vitest'
import { z } from 'zod'
import { Problem } from '../../src/errors.ts'
import { parseJson } from '../../src/http/body.ts'
import { validatorCompiler } from '../../src/http/zod.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import { compile } from '../../src/plan/compile.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { toBlueprint } from '../../src/plan/submission.ts'
import { costOf } from '../support/cpu-time.ts'
import { parseSent } from '../support/parse-sent.ts'

/** Ten thousand unknown names in one body: the search for the names that were probably meant took 250 ms. */

const registry = await loadRegistry()
const form = z.strictObject({ identifier: z.string(), description: z.string(), expires: z.string() })
const validate = validatorCompiler({ schema: form, httpPart: 'body', method: 'POST', url: '/' })

// Names that differ from a known one by few letters take longest.
const names = Array.from({ length: 9_990 }, (_, index) => `client_secret_${index}`)
const fields = Object.fromEntries(names.map((name) => [name, 1]))
const app = { name: 'a', slug: 'a' }
const oauth2 = 'service_providers_oauth2.oauth2provider'
const entry = (model: string, attrs: string) =>
  `version: 1\nmetadata: {name: a}\nentries: [{model: ${model}, identifiers: {name: x}, attrs: ${attrs}}]`

const apply = (body: unknown) => {
  const { value, errors } = parseJson(Buffer.from(JSON.stringify(body)))
  toBlueprint(value, registry, unconditional, errors).plan.errors.throwIfAny()
}
const blueprint = (text: string) => compile(parseSent(text), registry).errors.throwIfAny()

const bodies: Record<string, () => void> = {
  'fields of a provider': () => apply({ app, provider_model: oauth2, provider: fields }),
  'fields of an application': () => apply({ app: fields, provider_model: oauth2, provider: { name: 'x' } }),
  'fields of a submission': () => apply(fields),
  'fields inside a list': () =>
    apply({ app, provider_model: oauth2, provider: { name: 'x', redirect_uris: [fields] } }),
  'fields of a request': () => {
    const { value } = parseJson(Buffer.from(JSON.stringify(fields)))
    const refused = validate(value)
    if (typeof refused === 'object' && 'error' in refused) throw refused.error
  },
  'fields of an entry': () => blueprint(entry('service_core.group', `{${names.join(': 1, ')}: 1}`)),
  'permissions of a role': () => blueprint(entry('service_rbac.role', `{permissions: [${names.join(', ')}]}`)),
}

test.each(Object.entries(bodies))('ten thousand unknown %s cost little', (_, refuse) => {
  expect(costOf(() => expect(refuse).toThrow(Problem), { enough: 2 })).toBeLessThan(2)
})

test('a hundred are listed, with suggestions, and the others counted', () => {
  const sent = { app, provider_model: oauth2, provider: { name: 'x', authorization_flow: null, ...fields } }
  const tree = toBlueprint(sent, registry, unconditional).plan.errors.tree()
  expect(Object.values(tree.provider ?? {}).flat()).toContain('Unknown field. Did you mean client_secret?')
  expect(tree.non_field_errors).toEqual([expect.stringMatching(/^\d{4} more errors are not listed\.$/)])
})
