import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineModel, type ModelDeclaration } from '../../src/models/define.ts'
import { name, reference } from '../../src/models/fields.ts'
import { loadKinds } from '../../src/models/kinds.ts'
import { buildRegistry, loadRegistry, permissionNames } from '../../src/models/registry.ts'
import { freshFolder, kinds } from '../support/kit.ts'

const registry = await loadRegistry()

test('all kinds are found, each by its file name', () => {
  expect([...registry.kinds.keys()]).toEqual(kinds)
  for (const model of registry.models) expect(registry.byName(model.name)).toBe(model)
  expect(registry.byName('service_core.nothing')).toBeUndefined()
})

test('every reference has a target, and a backchannel provider is of a backchannel kind', () => {
  const referred = registry.models.flatMap(({ fields }) =>
    [...fields.values()].flatMap(({ reference }) => reference?.target ?? []),
  )
  for (const target of referred) expect([...registry.targets.keys()]).toContain(target)
  expect(registry.targets.get('provider')).toMatchObject({ table: 'providers', key: 'integer' })
  expect(registry.targets.get('backchannel provider')).toMatchObject({
    table: 'providers',
    key: 'integer',
    only: { column: 'kind', values: ['directory_sync_b', 'ldap', 'scim', 'workspace_sync_a'] },
  })
})

test('permissions are a closed list: four for each resource, one to read the secrets of some, and the special ones', () => {
  const names = permissionNames(registry)
  expect(names).toEqual([...new Set(names)].sort())
  expect(names).toEqual(
    expect.arrayContaining([
      'add_application',
      'change_radiusprovider',
      'delete_role',
      'view_token',
      'view_userconsent',
      'assign_role',
      'record_sign_in',
      'view_run',
    ]),
  )
  const toRead = names.filter((each) => each.startsWith('read_'))
  expect(toRead).toEqual(
    [...kinds.map((kind) => `${kind}provider`), 'certificatekeypair'].map((each) => `read_${each}_secrets`).sort(),
  )
  expect(names).toHaveLength(14 + 4 * registry.models.length + toRead.length)
})

const declaration: ModelDeclaration = {
  name: 'service_core.thing',
  displayName: 'thing',
  table: 'things',
  key: 'uuid',
  identifiers: [['name']],
  attrs: z.object({ name: name() }),
}

test('an inconsistent registry is refused at start', () => {
  const thing = defineModel(declaration)
  expect(() => buildRegistry([thing, thing], [])).toThrow('Two models are called service_core.thing.')
  const lost = defineModel({ ...declaration, attrs: z.object({ name: name(), owner: reference('nothing') }) })
  expect(() => buildRegistry([lost], [])).toThrow('owner refers to nothing, which no model is.')
  const unkept = defineModel({
    ...declaration,
    storedInJson: true,
    attrs: z.object({ name: name(), twin: reference('thing') }),
    columns: { name: 'name' },
  })
  expect(() => buildRegistry([unkept], [])).toThrow('twin refers to thing, which things has no column for.')
  const elsewhere = defineModel({ ...declaration, name: 'service_core.other', target: 'thing', table: 'others' })
  expect(() => buildRegistry([thing, elsewhere], [])).toThrow('the reference target thing has the table things')
})

const fields = pathToFileURL(join(import.meta.dirname, '../../src/models/provider.ts')).href
const zod = import.meta.resolve('zod')

const source = (kind: string) => `import { z } from '${zod}'
import { defineProvider } from '${fields}'
export default defineProvider({ kind: '${kind}', verboseName: 'Probe Provider', flows: 'none', settings: z.object({}) })
`

async function folderWith(files: Readonly<Record<string, string>>): Promise<URL> {
  const folder = freshFolder()
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text)
  return pathToFileURL(`${folder}/`)
}

test('a new kind is one new file', async () => {
  const [probe] = await loadKinds(await folderWith({ 'probe.ts': source('probe'), 'README.md': 'not a kind' }))
  expect(probe?.name).toBe('service_providers_probe.probeprovider')
})

test('a file that declares no kind, or one of another name, is refused with its path', async () => {
  await expect(loadKinds(await folderWith({ 'probe.ts': source('other') }))).rejects.toThrow(
    'models/providers/probe.ts declares the kind other',
  )
  await expect(loadKinds(await folderWith({ 'probe.ts': 'export default {}' }))).rejects.toThrow(
    'models/providers/probe.ts does not export a provider kind',
  )
})
