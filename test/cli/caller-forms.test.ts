import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { readInputs } from '../../src/cli/inputs.ts'
import { freshFolder } from '../support/folder.ts'

/** `{"env": "NAME"}` and `{"file": "path"}` in JSON, which has no tags. */

const folder = freshFolder()
writeFileSync(join(folder, 'secret.txt'), 'from a file\n')
writeFileSync(join(folder, 'account.json'), '{"private_key": "k"}')
vi.stubEnv('GW_TEST_FORM', 'from a variable')

async function read(document: object) {
  const path = join(folder, 'document.json')
  writeFileSync(path, JSON.stringify(document, null, 2))
  const { documents, secrets } = await readInputs([path], {})
  const [found] = documents
  return { found, secrets, value: found !== undefined && 'value' in found ? found.value : undefined }
}

const radius = (provider: object) => ({
  app: { name: 'vpn', slug: 'vpn' },
  provider_model: 'service_providers_radius.radiusprovider',
  provider: { name: 'vpn', ...provider },
})

test('stand for a variable and a file, also in the forms of a secret, and are not shown', async () => {
  const { value, secrets, found } = await read(radius({ shared_secret: { env: 'GW_TEST_FORM' } }))
  expect(value).toMatchObject({ provider: { shared_secret: 'from a variable' } })
  expect(found).toMatchObject({ body: expect.stringContaining('from a variable') })
  expect([...secrets]).toEqual(['from a variable'])
  const { value: created } = await read(radius({ shared_secret: { create: { file: 'secret.txt' } } }))
  expect(created).toMatchObject({ provider: { shared_secret: { create: 'from a file' } } })
})

test('in each field of a blueprint, and inside of secret objects and lists; attributes keep such values', async () => {
  const entry = (model: string, name: unknown, attrs: object) => ({ model, identifiers: { name }, attrs })
  const attributes = { env: 'prod' }
  const { value } = await read({
    version: 1,
    owner: { env: 'GW_TEST_FORM' },
    context: { env: 'prod' },
    metadata: { name: { env: 'GW_TEST_FORM' }, labels: { env: 'prod' } },
    entries: [
      entry('service_core.group', { env: 'GW_TEST_FORM' }, { attributes }),
      entry('service_providers_workspace_sync_a.workspace_sync_aprovider', 'a', {
        credentials: { file: 'account.json' },
      }),
      entry('service_providers_rac.racprovider', 'b', { settings: { password: { env: 'GW_TEST_FORM' } } }),
      entry('service_providers_oauth2.oauth2provider', 'c', {
        redirect_uris: [{ matching_mode: 'strict', url: { file: 'secret.txt' } }],
      }),
    ],
  })
  expect(value).toMatchObject({
    owner: 'from a variable',
    metadata: { name: 'from a variable', labels: { env: 'prod' } },
    entries: [
      { identifiers: { name: 'from a variable' }, attrs: { attributes } },
      { attrs: { credentials: '{"private_key": "k"}' } },
      { attrs: { settings: { password: 'from a variable' } } },
      { attrs: { redirect_uris: [{ url: 'from a file' }] } },
    ],
  })
})

test('without a value, the place in the file is named', async () => {
  const { found } = await read(radius({ shared_secret: { env: 'GW_NO_SUCH_VARIABLE' } }))
  expect(found).toMatchObject({
    errors: expect.arrayContaining([
      expect.stringMatching(/document\.json:9:\d+ !Env: the variable GW_NO_SUCH_VARIABLE is not set, or is empty/),
    ]),
  })
  const { found: outside } = await read(radius({ shared_secret: { file: '../secret.txt' } }))
  expect(outside).toMatchObject({ errors: expect.arrayContaining([expect.stringMatching(/is not below/)]) })
})
