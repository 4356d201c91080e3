import { expect, test } from 'vitest'
import { randomText } from '../../src/ids.ts'
import { hasPlaceholder, isPlaceholder } from '../../src/models/placeholder.ts'

/** Texts that some program was to replace, and those that no program would. */

test.each([
  ...['!Env NAME', '!File secrets/x.txt', '!Context name', '!Env [NAME, default]', '!vault kv/x', '!Ref Secret'],
  ...[
    '$' + '{NAME}',
    '$' + '{NAME:-default}',
    '$' + '{env:NAME}',
    '$' + '{{ secrets.NAME }}',
    '$NAME',
    '$SHARED_SECRET',
  ],
  ...['$(NAME)', '{$NAME}', '{{ name }}', '{{name}}', '{{ .Values.secret | quote }}', '{% secret %}', '<%= secret %>'],
  ...['%NAME%', '%(name)s', '{NAME}', '{env:NAME}', '{file:/run/secret}', '#{NAME}#', '__NAME__', '@NAME@'],
  ...['<name>', '<NAME>', '<Name>', '<your secret here>', '<Your Secret>'],
  ...['CHANGEME', 'change-me', 'replace_this', 'TODO', 'your-secret-here', 'your-256-bit-secret'],
  ...[
    'ENC[AES256_GCM,data:x]',
    'op://vault/item/field',
    '<path:secret/data/x#y>',
    '$__env{NAME}',
    'ref+vault://kv/x#y',
    'vault:kv/data/x#y',
    '  {{ name }}\n',
  ],
])('the secret %s is a placeholder', (text) => {
  expect(isPlaceholder(text)).toBe(true)
})

test.each([
  ...['secret', 'hunter2', '$ecret', 'pa$$word', 'a<b>c', 'changeme2', '!important', '! x', 'Bearer x', '{"a":1}'],
  ...['$2y$10$abcdefghijklmnopqrstuv', '{bcrypt}$2y$10$abc', 'correct horse battery staple', 'prefix-$' + '{NAME}', ''],
])('the secret %j is none', (text) => {
  expect(isPlaceholder(text)).toBe(false)
})

const printable = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).join('')
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
test.each([
  ['base62', `${letters}0123456789`],
  ['base64', `${letters}0123456789+/=`],
  ['base64url', `${letters}0123456789-_`],
  ['hexadecimal', '0123456789abcdef'],
  ['printable', printable],
])('no random secret of 128 %s characters is one, nor one that a service generates', (_, alphabet) => {
  const random = () => Array.from(randomText(128), (each) => alphabet[each.charCodeAt(0) % alphabet.length]).join('')
  for (let count = 0; count < 1_000; count += 1) {
    expect(isPlaceholder(randomText(128))).toBe(false)
    expect(isPlaceholder(random())).toBe(false)
  }
})

test.each([
  ...['https://x.$' + '{ZONE}/cb', '^https://x\\.\\$\\{ZONE\\}/cb$', '^https://x\\.$' + '{ZONE}/cb$', 'x.{{ zone }}'],
  ...['DC=$' + '{DOMAIN},DC=com', '$' + '{ADMIN}@example.com', '!Env NAME', '$' + '{CLIENT_ID}'],
])('%s has a part to be replaced', (text) => {
  expect(hasPlaceholder(text)).toBe(true)
})

test.each([
  ...['https://app.example.com/%(username)s', '^https://a{2}\\.example\\.com/[^/]+$', 'Deploys $' + '{APP} at night'],
  ...['!important note', '<Wiki>', 'TODO', 'a {{ b }} c'],
])('%s has none', (text) => {
  expect(hasPlaceholder(text)).toBe(false)
})
