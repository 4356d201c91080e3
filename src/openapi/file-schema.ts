import { z } from 'zod'
import { blueprintForm, wasMeaning } from '../document/form.ts'
import { secretIsSet } from '../document/generate.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { conversion } from './json-schema.ts'
import { fieldsOf, usualFirst } from './writable.ts'

/**
 * The JSON Schema of files, for editors: a blueprint, or a submission. An entry has the fields of its model, and none of them is
 * required: the fields that a new row needs may be absent for an existing one.
 *
 * An editor knows no tags. It takes `!Env NAME` for a text, and `!Find [...]` for a list. So each value may be a text or a list,
 * and a text has no pattern: the name of a variable would not match it.
 */

/** The tags, for the setting `yaml.customTags` of editors. */
export const customTags: readonly string[] = [
  ...['KeyOf', 'Env', 'File', 'Context', 'If', 'Index', 'Value'].map((name) => `!${name} scalar`),
  ...['Find', 'Env', 'File', 'Context', 'Format', 'If', 'Condition', 'Enumerate', 'AtIndex'].map(
    (name) => `!${name} sequence`,
  ),
]

export function fileSchema(registry: Registry): JsonObject {
  const $defs = {
    ...Object.fromEntries(registry.models.flatMap((model) => definitionsOf(registry, model))),
    ...z.toJSONSchema(secretIsSet, conversion).$defs,
    entry: entryOf(registry),
    blueprint: blueprintOf(),
    submission: submissionOf(registry),
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Gatewright',
    description: 'A blueprint (`entries`), or a submission (`app`, `provider_model`, `provider`).',
    type: 'object',
    // This is no union: an editor shows the errors of the form that the file has.
    ...either({ anyOf: ['app', 'provider_model', 'provider'].map((name) => ({ required: [name] })) }, [
      to('submission'),
      to('blueprint'),
    ]),
    $defs,
  }
}

const to = (name: string): JsonObject => ({ $ref: `#/$defs/${name}` })

const either = (condition: JsonObject, [then, otherwise]: readonly [JsonObject, JsonObject]): JsonObject => ({
  if: condition,
  then,
  else: otherwise,
})

function toJson(schema: z.ZodType): JsonObject {
  const { $schema, $defs, ...json } = z.toJSONSchema(schema, { ...conversion, io: 'input' })
  return json
}

/** The forms that the command line program replaces by a secret. */
const fromCaller = ['env', 'file'].map((name) => toJson(z.strictObject({ [name]: z.string() })))

function ownFields(registry: Registry, model: Model): JsonObject {
  const schema = toJson(fieldsOf(registry, model, 'create').partial())
  const properties = Object.entries(propertiesOf(schema)).map(([name, of]) => {
    const { secret = false, reference } = model.fields.get(name) ?? {}
    const { anyOf, description, ...alone } = Object(of)
    const edit = { type: 'object', properties: { add: alone, remove: alone }, additionalProperties: false }
    const others = [...(secret ? fromCaller : []), ...(reference?.many ? [edit] : [])]
    if (others.length === 0) return [name, of]
    return [name, { ...(description && { description }), anyOf: [...(anyOf ?? [alone]), ...others] }]
  })
  return { ...schema, properties: Object.fromEntries(properties) }
}

const identifiersOf = (name: string) => `${name}.identifiers`

/** The schema of all fields, and that of the fields by which a row is found. */
function definitionsOf(registry: Registry, model: Model): [name: string, schema: JsonObject][] {
  const fields = toTake(ownFields(registry, model))
  const finds = Object.entries(propertiesOf(fields)).filter(([name]) => {
    const storage = model.fields.get(name)?.storage
    return storage?.in === 'column' && !storage.json
  })
  const key = toTake({ type: model.key === 'uuid' ? 'string' : 'integer', description: 'The key.' })
  // Fields that only answers show are ignored, or null: they are no error, and no editor proposes them.
  const named = (names: readonly string[] | undefined, schema: JsonObject) =>
    names === undefined || names.length === 0 ? {} : { [`^(${names.join('|')})$`]: schema }
  const patternProperties = { ...named(model.readOnly, {}), ...named(model.alwaysNull, { type: 'null' }) }
  return [
    [model.name, { ...fields, patternProperties }],
    [
      identifiersOf(model.name),
      { ...fields, patternProperties, properties: { ...Object.fromEntries(finds), pk: key } },
    ],
  ]
}

const propertiesOf = (schema: unknown): JsonObject =>
  isObject(schema) && isObject(schema.properties) ? schema.properties : {}

const form = toJson(blueprintForm(z.string()))
const entries = Object(propertiesOf(form).entries)

function entryOf({ models }: Registry): JsonObject {
  const { required } = entries.items
  const { identifiers, attrs, conditions, ...members } = eachTaken(propertiesOf(entries.items))
  const variants = models.map(({ name, displayName }) => ({
    type: 'object',
    title: displayName,
    properties: {
      ...members,
      model: { type: 'string', enum: [name] },
      identifiers: { ...to(identifiersOf(name)), description: Object(identifiers).description },
      attrs: orNull({ ...to(name), description: Object(attrs).description }),
      conditions: orNull(Object(conditions)),
    },
    required,
    additionalProperties: false,
  }))
  const entry = { required, discriminator: { propertyName: 'model' }, oneOf: variants }
  return either({ type: 'object' }, [entry, { type: ['string', 'array'], description: 'A tag.' }])
}

function blueprintOf(): JsonObject {
  const { entries: _entries, version, ...others } = propertiesOf(form)
  const { metadata, context, ...members } = eachTaken(others)
  const { items: _items, type: _type, description, ...limits } = entries
  const list = { type: 'array', items: to('entry'), ...limits }
  const section = { ...list, description: 'Entries under a name, which is for the reader.' }
  return {
    type: 'object',
    properties: {
      version,
      ...members,
      metadata: orNull(Object(metadata)),
      context: orNull(Object(context)),
      entries: { ...list, type: ['array', 'object'], additionalProperties: section, description },
    },
    required: form.required,
    additionalProperties: false,
  }
}

function submissionOf(registry: Registry): JsonObject {
  const application = registry.byName('service_core.application')
  const was = { type: 'string', description: wasMeaning }
  const withWas = (model: Model) => {
    const schema = ownFields(registry, model)
    return toTake({ ...schema, properties: { ...propertiesOf(schema), was } })
  }
  const app = application && withWas(application)
  const owner = {
    type: 'string',
    description: 'The label under which both are managed. The program `gatewright` sends it as `Gatewright-Owner`.',
  }
  return {
    type: 'object',
    required: ['app', 'provider_model', 'provider'],
    discriminator: { propertyName: 'provider_model' },
    oneOf: usualFirst(registry).map((kind) => ({
      title: kind.provider.verboseName,
      properties: { app, owner, provider_model: { type: 'string', enum: [kind.name] }, provider: withWas(kind) },
      additionalProperties: false,
    })),
  }
}

/** The same schema, which also takes the values that an editor makes of tags. */
function toTake(schema: JsonObject): JsonObject {
  const { pattern, format, type, ...rest } = schema
  const { anyOf, items, properties, additionalProperties } = rest
  const types = [type].flat().filter((each) => typeof each === 'string')
  if (rest.enum !== undefined) {
    const { description, enum: choices, ...others } = rest
    if (!types.includes('string')) return schema
    return { ...(description !== undefined && { description }), anyOf: [{ type, enum: choices, ...others }, aList] }
  }
  const isOpen = types.length === 0 || types.every((each) => each === 'null')
  const taken = isOpen ? types : [...new Set([...types, 'string', 'array'])]
  return {
    ...rest,
    ...(taken.length > 0 && { type: taken.length === 1 ? taken[0] : taken }),
    ...(Array.isArray(anyOf) && { anyOf: anyOf.map((each) => toTake(each)) }),
    ...(isObject(items) && { items: toTake(items) }),
    ...(isObject(additionalProperties) && { additionalProperties: toTake(additionalProperties) }),
    ...(isObject(properties) && { properties: eachTaken(properties) }),
  }
}

const aList = { type: 'array', description: 'A tag.' }

const eachTaken = (properties: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, toTake(Object(each))]))

/** The same schema, which also takes null: it counts as left out. */
const orNull = ({ description, ...schema }: JsonObject): JsonObject => ({
  anyOf: [schema, { type: 'null' }],
  ...(description !== undefined && { description }),
})
