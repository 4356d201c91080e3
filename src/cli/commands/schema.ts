import { loadRegistry } from '../../models/registry.ts'
import { customTags, fileSchema } from '../../openapi/file-schema.ts'
import { readArguments } from '../arguments.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { openOutput } from '../output.ts'

/** `gatewright schema`: prints the schema of files, for editors. */

export const usage = `gatewright schema

Prints the JSON Schema of files, for editors that check and complete them: blueprints and submissions, with the fields of
each model of this version. It asks no service. A file that begins with this line uses it:

  # yaml-language-server: $schema=./gatewright.schema.json

Editors show a tag that they do not know as an error. Tell them, in the settings of the project:

  "yaml.customTags": [
${customTags.map((tag) => `    ${JSON.stringify(tag)}`).join(',\n')}
  ]

A tag may stand for any value, so a text is no error where a number belongs. validate checks all of it.
`

export async function run(args: readonly string[]): Promise<number> {
  const { positionals } = readArguments(args, {})
  if (positionals.length > 0) throw new UsageError('schema takes no names.')
  openOutput({ json: true }).json(fileSchema(await loadRegistry()))
  return exitCodes.done
}
