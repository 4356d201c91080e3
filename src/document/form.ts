import { z } from 'zod'
import { filledLine, line, ownerLabel } from '../models/fields.ts'
import { documentLimits, entryStates, stackOf } from './document.ts'

/** The form of a blueprint, for its check and for the description of the API. */

const fields = z.record(z.string(), z.unknown())

/** Labels are for other programs: they are kept, and have no effect. */
const labels = z
  .record(line(255), z.union([line(255), z.number(), z.boolean()], 'Must be text, a number, true or false.'))
  .refine((all) => Object.keys(all).length <= 50, 'Must be at most 50 entries.')

const metadataForm = z
  .strictObject({
    name: filledLine(255).exactOptional().meta({ description: 'Left out, it is taken from the first entry.' }),
    labels: labels.exactOptional().meta({ description: 'They are kept, and have no effect.' }),
  })
  .meta({ description: 'What the run is called. Left out, it is taken from the first entry.' })

const conditionsForm = z.array(z.unknown()).max(100).meta({
  description: 'What must be true, else the entry is skipped. Entries that are skipped count as not named.',
})

const noPermissions = z
  .array(z.unknown())
  .refine(({ length }) => length === 0, 'Permissions are given by roles and groups: leave this out.')
  .meta({ description: 'Empty: permissions are given by roles and groups.' })

/** The meaning of `was` in the description of the API. */
export const wasMeaning =
  'The name (or slug) that the row had before: while the row has it, it is renamed. Ignored when the new one is there and the old one is not, so that it may stay. When both are there, a 409.'

const maxPruned = 1_000

const pruneForm = z
  .union([z.boolean(), z.array(ownerLabel()).max(maxPruned)], 'Must be true, false or a list of owners.')
  .meta({
    description:
      'The document is a stack by itself, named by its owner (or by these owners) and its title: as with `Gatewright-Stack`, which it cannot be sent with.',
  })

/** The form of a blueprint. @param model the schema of an entry's `model` */
export const blueprintForm = <Model extends z.ZodType<string>>(model: Model) =>
  z
    .strictObject({
      version: z.literal(1),
      metadata: metadataForm.exactOptional(),
      context: fields.exactOptional().meta({ description: 'Values for `!Context`, in YAML. They are not kept.' }),
      owner: ownerLabel().exactOptional().meta({
        description:
          'The label under which its applications and providers are managed, as the header `Gatewright-Owner`: of entries without an `owner` of their own.',
      }),
      prune: pruneForm.exactOptional(),
      entries: z
        .array(
          z.strictObject({
            model,
            id: filledLine(255).exactOptional().meta({ description: 'What other entries call it.' }),
            state: z.enum(entryStates).default('present').meta({
              description:
                '`present`: created, or what is listed updated. `created`: created once, and left alone afterwards. `must_created`: refused when it is there. `absent`: deleted. Left out, it is `present`.',
            }),
            was: filledLine(255).exactOptional().meta({ description: wasMeaning }),
            owner: ownerLabel().nullable().exactOptional().meta({
              description:
                'The label under which this application or provider is managed. Left out, it is that of the document. Null: none.',
            }),
            retain: z.boolean().exactOptional().meta({
              description:
                'True: once the entry leaves the files, its row stays without the stack. Else it is left over.',
            }),
            identifiers: fields.meta({ description: 'Fields that find the row.' }),
            attrs: fields
              .default({})
              .meta({ description: 'The other fields, with their new values. A field that is not listed is kept.' }),
            conditions: conditionsForm.exactOptional(),
            permissions: noPermissions.exactOptional(),
          }),
        )
        .max(documentLimits.entries)
        .meta({
          description: 'In their order. None at all only with `prune`: all of its stack is left over then.',
        }),
    })
    .check(({ value, issues }) => {
      const { entries, prune } = value
      // The last object leaves its stack by a document that names none.
      if (entries.length === 0 && (prune === undefined || stackOf({ prune }, '') === null))
        issues.push({
          code: 'too_small',
          origin: 'array',
          minimum: 1,
          inclusive: true,
          input: entries,
          path: ['entries'],
          message:
            'Must be at least 1 entries. To empty a stack, name one object of it as absent: all others are left over.',
        })
    })
