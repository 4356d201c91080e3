import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository of a platform: shared groups and mappings, and forty files of twenty teams with 300 applications. */

const teams = 20
const usual = 15

export const applications = teams * usual

/** What is not an application with its provider. */
export const sharedObjects = 3 + teams

/** Objects of all files: each application has a provider. */
export const objects = 2 * applications + sharedObjects

export const two = (number: number): string => String(number).padStart(2, '0')
export const slugOf = (team: number, application: number): string => `t${two(team)}-app-${two(application)}`
export const fileOf = (team: number, part: 1 | 2): string => `team-${two(team)}/${part}.yaml`
export const sharedFile = '1-shared.yaml'
export const staff = 'Platform staff'
export const teamGroup = (team: number): string => `Platform team ${two(team)}`
export const claims = 'platform claims'

/** One entry for each line, so that a change of one is a change of its line. */
const line = (entry: object): string =>
  `  - ${JSON.stringify(entry).replaceAll(/"!Env (\w+)"/g, (_, name: string) => `!Env ${name}`)}\n`

const document = (head: string, entries: readonly object[]): string =>
  `version: 1\n${head}entries:\n${entries.map(line).join('')}`

/** Secrets that the service generates elsewhere are set for new objects alone. */
export const secrets = {
  PLATFORM_SECRET: 'a secret of the platform, of many letters',
  PLATFORM_TOKEN: 'a token of SCIM',
}

const given: Readonly<Record<string, object>> = {
  oauth2: {
    authorization_flow: 'default-authorization-explicit',
    client_secret: { create: '!Env PLATFORM_SECRET' },
    property_mappings: [claims],
  },
  radius: { shared_secret: { create: '!Env PLATFORM_SECRET' } },
  scim: { token: '!Env PLATFORM_TOKEN', filter_group: staff },
}

/** The shipped examples, by kind. */
const examples = fileURLToPath(new URL('../../../examples/', import.meta.url))
const kinds = readdirSync(examples).flatMap((file) => (file.endsWith('.json') ? file.replace('.json', '') : []))

function entriesOf(team: number, application: number): object[] {
  const slug = slugOf(team, application)
  const kind = kinds[(team * usual + application) % kinds.length] ?? 'oauth2'
  const { provider_model: model, provider, app } = JSON.parse(readFileSync(join(examples, `${kind}.json`), 'utf8'))
  const { name: _, ...attrs } = provider
  const own = kind === 'oauth2' ? { client_id: `client-${slug}` } : {}
  return [
    { model, identifiers: { name: slug }, attrs: { ...attrs, ...given[kind], ...own } },
    {
      model: 'service_core.application',
      identifiers: { slug },
      attrs: { ...app, slug: undefined, name: `Application ${slug}`, provider: slug, group: `Team ${two(team)}` },
    },
  ]
}

const shared = (): readonly object[] => [
  { model: 'service_mappings.propertymapping', identifiers: { name: claims, kind: 'oauth2' } },
  {
    model: 'service_rbac.role',
    identifiers: { name: 'Platform readers' },
    attrs: { permissions: ['view_application'] },
  },
  { model: 'service_core.group', identifiers: { name: staff }, attrs: { attributes: { cost_centre: 1 } } },
  ...Array.from({ length: teams }, (_, index) => ({
    model: 'service_core.group',
    identifiers: { name: teamGroup(index + 1) },
    attrs: { parent: staff, roles: ['Platform readers'] },
  })),
]

export type Repository = {
  readonly folder: string
  read(file: string): string
  write(file: string, text: string): void
  /** Replaces a text that is there, once. */
  edit(file: string, from: string | RegExp, to: string): void
}

/** @param each applications of a team */
export function makeRepository(folder: string, each = usual): Repository {
  const read = (file: string) => readFileSync(join(folder, file), 'utf8')
  const write = (file: string, text: string) => {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  write('gatewright.yaml', 'stack: platform\n')
  write(sharedFile, document('', shared()))
  for (let team = 1; team <= teams; team += 1) {
    const parts: Record<1 | 2, object[]> = { 1: [], 2: [] }
    for (let application = 1; application <= each; application += 1)
      parts[application <= Math.ceil(each / 2) ? 1 : 2].push(...entriesOf(team, application))
    for (const part of [1, 2] as const) write(fileOf(team, part), document(`owner: team-${two(team)}\n`, parts[part]))
  }
  const edit: Repository['edit'] = (file, from, to) => {
    const text = read(file)
    const changed = text.replace(from, () => to)
    if (changed === text) throw new Error(`${file} does not have ${String(from)}`)
    write(file, changed)
  }
  return { folder, read, write, edit }
}
