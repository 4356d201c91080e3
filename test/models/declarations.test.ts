import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { checkModels } from '../../src/models/check.ts'
import { fileOf } from '../../src/models/declared.ts'
import { defineModel, type Model } from '../../src/models/define.ts'
import { name } from '../../src/models/fields.ts'
import group from '../../src/models/group.ts'
import { defineProvider, type ProviderModel } from '../../src/models/provider.ts'
import radius from '../../src/models/providers/radius.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import { submissionExamples } from '../../src/openapi/submission-examples.ts'
import { freshDatabase, freshFolder } from '../support/kit.ts'

/** Each declaration is broken once: it is found at start, in a sentence that names the file and what to do. */

const root = new URL('../../', import.meta.url)
const registry = await loadRegistry()

const links = {
  users: { table: 'memberships', own: 'group_pk', other: 'user_pk' },
  roles: { table: 'group_roles', own: 'group_pk', other: 'role_pk' },
}
const groupWith = (fields: z.ZodRawShape, changed: typeof links = links): Model =>
  defineModel({ ...group, attrs: group.attrs.extend(fields), links: changed })

test('each model names the file that declares it', () => {
  const files = registry.models.map(fileOf)
  expect(new Set(files).size).toBe(files.length)
  expect(files).toEqual(expect.arrayContaining(['src/models/totp-device.ts', 'src/models/providers/radius.ts']))
  for (const file of files) expect(() => cpSync(new URL(file, root), join(freshFolder(), 'there'))).not.toThrow()
})

test('an example that does not fit its field is found when the model is declared', () => {
  expect(() => groupWith({ name: name(5).meta({ examples: ['platform'] }) })).toThrow(
    'src/models/group.ts: the example "platform" of the field name does not fit it: Must be at most 5 characters. Change the example.',
  )
  expect(() =>
    defineProvider({
      ...{ kind: 'probe', verboseName: 'Probe', flows: 'none' },
      settings: z.object({
        port: z
          .int()
          .meta({ examples: ['x'] })
          .default(1),
      }),
    }),
  ).toThrow('src/models/providers/probe.ts: the example "x" of the field port does not fit it')
})

test('a field without its column is found at start', async () => {
  const { db } = await freshDatabase()
  await expect(checkModels(db, registry)).resolves.toBeUndefined()
  const wrong = [
    groupWith({ cost_center: z.string().default('') }),
    groupWith({}, { ...links, users: { ...links.users, own: 'group' } }),
    defineProvider({
      ...{ kind: 'probe', verboseName: 'Probe', flows: 'none' },
      ...{ settings: z.object({ port: z.int().default(1) }), columns: { port: 'probe_port' } },
    }),
  ]
  const error: unknown = await checkModels(db, { models: wrong }).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ name: 'StartError' })
  const text = String(error)
  expect(text).toContain(
    'src/models/group.ts declares the field cost_center, but the table groups has no column cost_center.',
  )
  expect(text).toContain('src/models/group.ts declares the field users, but the table memberships has no column group.')
  expect(text).toContain(
    'src/models/providers/probe.ts declares the field port, but the table providers has no column probe_port.',
  )
  expect(text).toContain('Add it to prisma/schema.prisma and write its migration with "npm run migration"')
})

/** The shipped examples, changed. */
function examplesWith(change: (folder: string) => void): URL {
  const folder = freshFolder()
  cpSync(fileURLToPath(new URL('examples/', root)), folder, { recursive: true })
  change(folder)
  return pathToFileURL(`${folder}/`)
}

const without = (provider: ProviderModel['provider']['kind']) => ({
  ...registry,
  kinds: new Map([...registry.kinds].filter(([kind]) => kind !== provider)),
})

test('an example that does not apply is found when the routes are declared', () => {
  expect(Object.keys(submissionExamples(registry)).toSorted()).toEqual([...registry.kinds.keys()].toSorted())
  const radiusExample = submissionExamples(registry).radius as { value: { provider: object } }
  const withRadius = (text: string) => examplesWith((folder) => writeFileSync(join(folder, 'radius.json'), text))
  const wrong = { ...radiusExample.value, provider: { ...radiusExample.value.provider, client_networks: 'nowhere' } }
  expect(() => submissionExamples(registry, withRadius(JSON.stringify(wrong)))).toThrow(
    /^examples\/radius\.json does not apply: provider\.client_networks: .*nowhere.* Correct the example\.$/,
  )
  expect(() => submissionExamples(registry, withRadius('{'))).toThrow('examples/radius.json is not JSON: ')
  expect(() => submissionExamples(registry, withRadius('{}'))).toThrow(
    `examples/radius.json is not a submission with "provider_model": "${radius.name}".`,
  )
  expect(() =>
    submissionExamples(
      registry,
      examplesWith((folder) => rmSync(join(folder, 'radius.json'))),
    ),
  ).toThrow('The provider kind radius has no example: write examples/radius.json, a submission with "')
  expect(() => submissionExamples(without('radius'))).toThrow('examples/radius.json is named after no provider kind')
  expect(submissionExamples(registry, pathToFileURL(join(freshFolder(), 'none/')))).toEqual({})
})
