import { loadRegistry } from '../models/registry.ts'
import { customTags, fileSchema } from '../openapi/file-schema.ts'
import { exitCodes } from './exit.ts'
import { openOutput } from './output.ts'

/** `gatewright validate --schema`: prints the schema of files, for editors. */

export const forEditors = `A file that begins with this line is checked by the schema:

  # yaml-language-server: $schema=./gatewright.schema.json

Editors show a tag that they do not know as an error. Tell them, in the settings of the project:

  "yaml.customTags": [
${customTags.map((tag) => `    ${JSON.stringify(tag)}`).join(',\n')}
  ]

A tag may stand for any value, so a text is no error where a number belongs. validate checks all of it.`

export async function printSchema(): Promise<number> {
  const output = openOutput({ json: true })
  output.json(fileSchema(await loadRegistry()))
  // The reader of a pipe or of a log has no editor.
  if (process.stderr.isTTY) output.note(forEditors)
  return exitCodes.done
}
