import fc from 'fast-check'
import { hasPlaceholder, isPlaceholder } from '../../../src/models/placeholder.ts'
import { storable, storableJson } from '../../../src/models/syntax.ts'
import { pairs } from './certificates.ts'

/** Values of fields that are neither references nor choices, by the name of the field. */

/** Texts that YAML readers take for something else, or that are hard to print. */
const traps = [
  ...['null', '~', 'true', 'No', '1e3', '0x1F', '012', '-0', '.inf', '2020-01-01', '12:30:45', '<<', '=', '-'],
  ...[
    '- a',
    '? a',
    'a: b',
    'a #b',
    '#a',
    '*a',
    '&a',
    '@a',
    '`a',
    '%YAML 1.2',
    '---',
    '...',
    '|',
    '>',
    '[',
    '{',
    "'",
    '"',
  ],
  ...['!Env HOME', '!KeyOf x', '!Find [a, {}]', '********', '\\', 'é', 'e\u0301', '日本', '😀', '\u202eabc', '%s'],
]
const lines = [
  ' a',
  'a ',
  'a\n',
  '\na',
  'a\n\n  b\n',
  'a\r\nb',
  '\ta',
  'a\u2028b',
  'a\u0085b',
  '\ufeffa',
  `${'word '.repeat(60)}`,
]

const isStorable = (text: string) => storable(text) === undefined
const random = fc.string({ unit: 'grapheme', maxLength: 60 }).filter(isStorable)

const text = fc
  .oneof(fc.constantFrom('', ...traps, ...lines), random)
  .filter((each) => !isPlaceholder(each) && !hasPlaceholder(each))
const shown = text.filter((each) => !/[\p{Cc}\p{Cf}]/u.test(each) && each.length <= 255)
const described = text.filter((each) => !/[\p{Cc}\p{Bidi_Control}]/u.test(each.replaceAll(/\r?\n|\t/g, '')))
/** Not the mask, which is no value of a secret. */
const filled = text.filter((each) => each.trim() !== '' && each !== '********' && each.length <= 255)

/** Names as they are stored. */
export const name = fc
  .oneof(fc.constantFrom(...traps), random, fc.uuid())
  .filter(
    (each) =>
      each === each.normalize('NFC').trim() && each !== '' && !/[\p{Cc}\p{Cf}]/u.test(each) && each !== '********',
  )
export const slug = fc.oneof(
  fc.stringMatching(/^[-a-zA-Z0-9_]{1,50}$/),
  fc.uuid(),
  fc.constantFrom('null', '1e3', '-', '012'),
)

const json = fc
  .dictionary(fc.string({ maxLength: 12 }), fc.jsonValue({ maxDepth: 3, stringUnit: 'grapheme' }), { maxKeys: 5 })
  .filter((each) => storableJson(each) === undefined && !JSON.stringify(each).includes('__proto__'))
  .filter((each) => JSON.stringify(each).length < 4_000)
const duration = fc.constantFrom('minutes=1', 'hours=1;minutes=30', 'days=-1.5', 'seconds=+5')
const url = fc.constantFrom('https://a.example.com/x?y=%20#z', 'http://10.0.0.1:8080')
const domain = fc.constantFrom('example.com', 'xn--bcher-kva.example')
const number = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const lineOf = (max: number) => text.filter((each) => each.length <= max)

const redirectUri = fc.oneof(
  fc.record({
    matching_mode: fc.constant('strict'),
    url: fc.constantFrom('https://a.example.com/cb', 'app.example:/cb'),
  }),
  fc.record({ matching_mode: fc.constant('regex'), url: fc.constantFrom('^https://a\\.example\\.com/.*$') }),
)

export const values: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  name,
  ...{ title: shown, meta_description: described, meta_publisher: shown, audience: text, default_relay_state: text },
  ...{ expression: text, group: shown, tls_server_name: lineOf(255), issuer: filled, scopes: filled },
  ...{ basic_auth_password_attribute: filled, basic_auth_user_attribute: filled, tenant_id: filled },
  ...{ client_secret: filled, shared_secret: filled, token: filled, client_id: filled },
  meta_launch_url: fc.constantFrom('', 'https://a.example.com/%(username)s'),
  attributes: json,
  settings: json,
  credentials: json,
  owners: fc.uniqueArray(fc.constantFrom('team-a', 'équipe b', 'null', '- c'), { maxLength: 3 }),
  redirect_uris: fc.array(redirectUri, { maxLength: 3 }),
  jwks_sources: fc.uniqueArray(fc.uuid(), { maxLength: 2 }),
  base_dn: fc.constantFrom('DC=ldap,DC=example,DC=com', 'OU=a\\, b,DC=x'),
  ...{ uid_start_number: number, gid_start_number: number },
  client_networks: fc.constantFrom('0.0.0.0/0, ::/0', '10.0.0.0/8'),
  ...{ internal_host: url, external_host: url, url, acs_url: url },
  skip_path_regex: fc.constantFrom('', '^/-/healthy$\n^/-/ready$'),
  ...{ cookie_domain: domain, default_group_email_domain: domain },
  delegated_subject: fc.constant('ada@example.com'),
  ...{ access_code_validity: duration, access_token_validity: duration, refresh_token_validity: duration },
  ...{ connection_expiry: duration, session_valid_not_on_or_after: duration },
  ...{ assertion_valid_not_before: duration, assertion_valid_not_on_or_after: duration },
}

/** A pair with its key, a certificate alone, a chain, or one that the service generates. */
export const keyPair = fc.oneof(
  fc.constantFrom(...pairs).map(({ certificate, key }) => ({ certificate_data: certificate, key_data: key })),
  fc.constant({ certificate_data: pairs[0].certificate, key_data: null }),
  fc.constant({ certificate_data: pairs[1].certificate + pairs[0].certificate, key_data: pairs[1].key }),
  fc.constant({}),
)
