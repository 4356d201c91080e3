import type { Model, Values } from '../../src/models/define.ts'
import { columnsOf } from '../../src/plan/statements.ts'
import { referenceRowsOf, toNewRow } from '../../src/plan/storage.ts'
import type { Organisation } from './organisation.ts'
import { type Random, stream } from './random.ts'
import type { Engine, Keys, Row, Table } from './table.ts'
import type { Template } from './templates.ts'
import { cities } from './words.ts'

/** Applications and providers, made from the shipped examples and stored as the engine stores them. */

type SeededProvider = { readonly uuid: string; readonly template: Template }

type SeededApplication = {
  readonly pk: string
  readonly template: Template
  /** Indexes of providers. */
  readonly provider: number | null
  readonly backchannel: number | null
}

/** The rows are made past the API: by the service itself. */
const creator = { pk: null, self: null, permissions: null } as const

export type Portfolio = {
  readonly applications: readonly SeededApplication[]
  readonly providers: readonly SeededProvider[]
}

/** The kinds take turns. Of ten applications one has no provider, and one has a backchannel provider too. */
export function assemble({ seed, size, today }: Organisation, templates: readonly Template[]): Portfolio {
  const numbers = stream(seed, 'applications')
  const backchannels = templates.filter(({ model }) => model.provider.backchannel)
  const providers: SeededProvider[] = []
  const applications = Array.from({ length: size.applications }, (_, number): SeededApplication => {
    const random = numbers(number)
    const add = (template: Template | undefined): number | null =>
      template === undefined ? null : providers.push({ uuid: random.uuid(), template }) - 1
    const template = templates[number % templates.length]
    if (template === undefined) throw new Error('there are no templates')
    return {
      pk: random.uuid(new Date(today.getTime() + number)),
      template,
      provider: number % 10 === 9 ? null : add(template),
      backchannel: number % 10 === 4 ? add(backchannels[number % backchannels.length]) : null,
    }
  })
  return { applications, providers }
}

export function applicationTables(
  organisation: Organisation,
  { registry, keyring }: Engine,
  { applications, providers }: Portfolio,
  keys: Keys,
): Table[] {
  const model = registry.byName('service_core.application')
  if (model === undefined) throw new Error('there is no model of applications')
  const keyOf = (provider: number | null) => (provider === null ? null : (keys.providers[provider] ?? null))
  const valuesOf = (number: number, provider: SeededProvider) => providerValues(organisation, number, provider)
  return [
    {
      name: 'providers',
      columns: [...new Set(providers.flatMap(({ template }) => columnsOf(template.model)))],
      items: providers.length,
      rows: each(providers, (provider, number) => {
        const identity = { pk: keys.providers[number] ?? 0, uuid: provider.uuid }
        const row = toNewRow(provider.template.model, identity, valuesOf(number, provider), unowned, keyring)
        // COPY writes null, not the default, where a kind has none of these.
        return [{ settings: {}, secrets: {}, ...plainRow(row) }]
      }),
    },
    {
      name: 'provider_references',
      columns: ['provider_pk', 'field', 'position', ...referenceColumns(providers)],
      items: providers.length,
      rows: each(providers, (provider, number) =>
        referenceRowsOf(provider.template.model, valuesOf(number, provider)).map((row) => ({
          provider_pk: keyOf(number),
          ...row,
        })),
      ),
    },
    {
      name: 'applications',
      columns: columnsOf(model),
      items: applications.length,
      rows: each(applications, ({ pk, template, provider }, number) => {
        const values = applicationValues(organisation, model, template, { number, provider: keyOf(provider) })
        return [plainRow(toNewRow(model, { pk }, values, unowned, keyring))]
      }),
    },
    {
      name: 'backchannel_providers',
      columns: ['application_pk', 'provider_pk'],
      items: applications.length,
      rows: each(applications, ({ pk, backchannel }) =>
        backchannel === null ? [] : [{ application_pk: pk, provider_pk: keyOf(backchannel) }],
      ),
    },
  ]
}

const referenceColumns = ([provider]: readonly SeededProvider[]): string[] =>
  Object.values(provider?.template.model.referenceRows?.columns ?? {}).map(({ name }) => name)

const each =
  <Item>(items: readonly Item[], rowsOf: (item: Item, number: number) => Row[]) =>
  (number: number): Row[] => {
    const item = items[number]
    return item === undefined ? [] : rowsOf(item, number)
  }

const unowned = { creator, createdBy: null, owner: null }

const plainRow = ({ columns }: ReturnType<typeof toNewRow>): Row => Object.fromEntries(columns)

function providerValues({ seed, prefix }: Organisation, number: number, { template }: SeededProvider): Values {
  const name = `${prefix}-${template.provider.name}-${number + 1}`
  return fieldValues(template.model, { ...template.provider, name }, stream(seed, 'providers')(number))
}

function applicationValues(
  { seed, prefix }: Organisation,
  model: Model,
  { app }: Template,
  { number, provider }: { number: number; provider: number | null },
): Values {
  const name = `${app.name} ${cities[number % cities.length]?.city} ${number + 1}`
  const sent = { ...app, name, slug: `${prefix}-${app.slug}-${number + 1}`, provider }
  return fieldValues(model, sent, stream(seed, 'application secrets')(number))
}

/** Values by field: random text where the service generates it, what was sent after its check, or the default. */
function fieldValues(model: Model, sent: Values, random: Random): Values {
  const values: Record<string, unknown> = {}
  for (const { name, schema, initial, generate } of model.fields.values()) {
    if (generate !== undefined) values[name] = random.text(generate().length)
    else values[name] = sent[name] === undefined ? (initial ?? null) : schema.parse(sent[name])
  }
  return values
}
