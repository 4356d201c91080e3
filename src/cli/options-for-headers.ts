import { own } from '../json-object.ts'

/** Replaces headers, parameters and fields in sentences of the service by the options that send them, which the user knows. */

const options: readonly (readonly [RegExp, string])[] = [
  [/Gatewright-Allow: (takeover|grants)\b/g, '--allow-$1'],
  [/Gatewright-Allow: deletes=(\d+)/g, '--allow-deletes $1'],
  [/`?Gatewright-Allow`?/g, '--allow-takeover, --allow-grants or --allow-deletes'],
  [/: Authorization: Bearer <ACCESS_TOKEN>/g, ''],
  [/`?Gatewright-Owner`?/g, '--owner'],
  [/`?Gatewright-Stack`?/g, '--stack'],
  [/`?Gatewright-Message`?/g, '--message'],
  [/`?If-Match`?/g, '--plan-file'],
  [/`?reset=true`?/g, '--reset'],
]

/** A text of JSON, such as the name of an object: it is kept. */
const quoted = /("(?:[^"\\]|\\.)*")/

/** `Gatewright-Allow: takeover applies it all the same` -> `--allow-takeover applies it all the same` */
export const inOptions = (text: string): string =>
  text
    .split(quoted)
    .map((part, index) =>
      index % 2 === 1 ? part : options.reduce((rest, [header, option]) => rest.replace(header, option), part),
    )
    .join('')

/** The options of a command without files, by the parameter or the field that is sent. */
const optionOf: Readonly<Record<string, string>> = {
  ...{ state: '--state', mode: '--mode', commit: '--commit', object: '--changed', request_id: '--request-id' },
  ...{ page_size: '--limit', slug: '--application', owner: '--owner', owners: '--owner', stack: '--stack' },
  ...{ stacks: '--stack', user: '--user', expires: '--days', description: '--message', identifier: 'IDENTIFIER' },
}

/** `state.0: Must be one of: queued, done.` -> `--state: Must be one of: queued, done.` */
export const ofOption = (line: string): string =>
  inOptions(line).replace(/^(\w+)(\.\d+)?(?=: )/, (field, name: string) => own(optionOf, name) ?? field)
