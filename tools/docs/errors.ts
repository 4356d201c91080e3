import { errorCodes } from '../../src/error-codes.ts'
import { catalogue, maxErrors, type ProblemCode } from '../../src/errors.ts'
import { texts } from '../../src/openapi/problems.ts'

/** docs/errors.md, from the catalogues. `npx vitest run test/openapi/errors-page.test.ts -u` writes it. */

/** What to do, where the meaning of the code does not say it. */
const remedies: Readonly<Record<ProblemCode, string>> = {
  accepted: 'Read it until its state is `done`, `failed` or `cancelled`.',
  outcome_unknown: 'Read it, or send the same again under the same `Idempotency-Key`.',
  invalid: 'Correct what `errors` lists, and send it again.',
  invalid_json: 'Send JSON in UTF-8.',
  invalid_http: 'Correct the client, or the proxy before it.',
  not_authenticated: 'Send a valid access token. An expired one has to be replaced.',
  permission_denied: 'Have the permission granted by a role or a group, or ask a user who has it.',
  not_found: '',
  invalid_page: 'Ask for a page up to `pagination.total_pages`.',
  method_not_allowed: 'Use a method of the header `Allow`.',
  too_slow: 'Send it again over a better connection.',
  conflict: 'Read `detail`: acknowledge it with `Gatewright-Allow`, or change the document.',
  cancelled_by_user: 'Ask that user. Another request, or the same under another `Idempotency-Key`, is a new run.',
  key_gone: 'Create another token.',
  route_gone: '',
  precondition_failed: 'Read the object again, or plan again, then decide anew.',
  too_large: 'Send less, for example in several documents.',
  unsupported_media_type: 'Send `application/json`, for blueprints also `application/yaml`, uncompressed.',
  idempotency_key_reused: 'Take another key for another request.',
  too_many_requests: '',
  headers_too_large: '',
  server_error: 'Search the log for the id of the request, which is in the header `X-Request-Id`.',
  cancelled: '[The reason](incidents.md#a-pipeline-got-503-cancelled).',
  unavailable: 'When it stays: [what to check](incidents.md#a-probe-is-503).',
}

const cell = (text: string): string => text.replaceAll('|', '\\|')

const row = (...cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`

/** Messages whose remedy takes more than the message says. */
const sentences: readonly (readonly [message: string, remedy: string])[] = [
  [
    'Is a number that is not kept digit for digit: send it as text, in quotes.',
    '`"discord_id": "1056712345678901234"`. Integers beyond 2^53, `1e400`, and decimals with more digits than a number holds are never rounded.',
  ],
  [
    'group "contractors" is the parent of group "night shift": change or delete that first.',
    'Up to 20 rows are named that hold the row. Change or delete them in the same document, before it.',
  ],
  [
    '"email" is taken by property mapping "email".',
    "A name is no other row's `name` or `managed` among the mappings that fit the same fields: choose another.",
  ],
  [
    'a.yaml:3:5 service_core.application "shop" is declared in b.yaml:4:5, too',
    'The two entries say different things of one object: keep one. Equal entries of two files are one.',
  ],
]

export function errorsPage(): string {
  const answers = Object.entries(catalogue).map(([name, status]) => {
    const code = name as ProblemCode
    return row(`\`${code}\``, String(status), texts[code][0], remedies[code])
  })
  const errors = Object.entries(errorCodes).map(([code, when]) => row(`\`${code}\``, when))
  return `# Errors

<!-- Made from src/errors.ts, src/error-codes.ts and tools/docs/errors.ts by
npx vitest run test/openapi/errors-page.test.ts -u -->

An answer that refuses has a \`code\`, which programs may rely on. Messages are for people, and may change.

## Codes of answers

${row('`code`', 'Status', 'When', 'What to do')}
| --- | --- | --- | --- |
${answers.join('\n')}

## Errors of fields

A 400 with \`code\` \`invalid\` has its messages by field, and the same errors one by one in \`errors\`, at most ${maxErrors}. So has a
403, 409 or 412 of a document those about its entries. Each has
\`code\`, \`message\` and:

| Field | |
| --- | --- |
| \`pointer\` | a JSON pointer (RFC 6901) into the body that was sent: \`/provider/redirect_uris/0/url\`, \`/entries/3/attrs/name\`. For a missing field, the place where it belongs |
| \`header\`, \`parameter\` | instead of \`pointer\`, for what is not in the body |
| \`entry\` | the \`id\` of the blueprint's entry, when it has one |
| \`line\`, \`column\` | only for a blueprint in YAML, counted from 1: where the field's name or the list's item begins. For a missing field, where the object begins that lacks it. There is none inside of a tag such as \`!If\` |
| \`source\` | that line, up to 200 characters. The values of secret fields, and of fields that are not known, are masked. There is none for an error of a secret field |

${row('`code`', 'When')}
| --- | --- |
${errors.join('\n')}

## What to do about a sentence

| The message | What to do |
| --- | --- |
${sentences.map((each) => row(...each)).join('\n')}
`
}
