import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readOrCreateSecret } from '../src/secret-file.ts'
import { StartError } from '../src/start-error.ts'
import { freshFolder } from './support/folder.ts'

const folder = freshFolder()

let count = 0
/** The path of a file with this text; without text there is no file. */
function file(text?: string): string {
  count += 1
  const path = join(folder, `secret-${count}`)
  if (text !== undefined) writeFileSync(path, text)
  return path
}

const rules = { minLength: 8, remedy: 'put the right one back' }
const generate = () => 'generated now'

test('a secret is generated once, and only its owner may read it', () => {
  const path = file()
  expect(readOrCreateSecret(path, generate, rules)).toBe('generated now')
  expect(readOrCreateSecret(path, () => 'generated later', rules)).toBe('generated now')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toContain('secret-1')
  expect(readdirSync(folder)).not.toContain('secret-1.half')
})

test.each(['12345678', 'from a file\n', '  between blanks  \n\n'])(
  'a secret is read without blanks around it: %j',
  (text) => {
    expect(readOrCreateSecret(file(text), generate, rules)).toBe(text.trim())
  },
)

test.each([
  ['', 'is empty'],
  ['\n \n', 'is empty'],
  ['1234567', 'holds 7 characters, and it takes 8 or more'],
  ['1234567   \n', 'holds 7 characters, and it takes 8 or more'],
])('a damaged file is refused and left as it is: %j', (text, why) => {
  const path = file(text)
  expect(() => readOrCreateSecret(path, generate, rules)).toThrow(
    new StartError(`${path} ${why}; put the right one back.`),
  )
  expect(readFileSync(path, 'utf8')).toBe(text)
})

test('an empty file is refused also without rules', () => {
  const path = file('')
  expect(() => readOrCreateSecret(path, generate)).toThrow(`${path} is empty; put the right one back from a backup.`)
})

test('a folder in its place is refused', () => {
  const path = file()
  mkdirSync(path)
  expect(() => readOrCreateSecret(path, generate, rules)).toThrow(new StartError(`${path} cannot be read (EISDIR).`))
})

test('a path that cannot be written is refused', () => {
  const path = join(file('a file'), 'below')
  expect(() => readOrCreateSecret(path, generate, rules)).toThrow(new StartError(`${path} cannot be written (EEXIST).`))
})
