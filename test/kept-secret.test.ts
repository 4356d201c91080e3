import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { keepSecret } from '../src/kept-secret.ts'
import { StartError } from '../src/start-error.ts'
import { freshFolder } from './support/folder.ts'

const folder = freshFolder()

let count = 0
/** The name of a file that holds this, or is not there. */
function file(text?: string): string {
  count += 1
  const path = join(folder, `secret-${count}`)
  if (text !== undefined) writeFileSync(path, text)
  return path
}

const limits = { atLeast: 8, remedy: 'put the right one back' }
const make = () => 'made just now'

test('a secret is made once, for its owner alone', () => {
  const path = file()
  expect(keepSecret(path, make, limits)).toBe('made just now')
  expect(keepSecret(path, () => 'made later', limits)).toBe('made just now')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toContain('secret-1')
  expect(readdirSync(folder)).not.toContain('secret-1.half')
})

test.each(['12345678', 'from a file\n', '  between blanks  \n\n'])(
  'a secret is read as it is, blanks around it aside: %j',
  (text) => {
    expect(keepSecret(file(text), make, limits)).toBe(text.trim())
  },
)

test.each([
  ['', 'is empty'],
  ['\n \n', 'is empty'],
  ['1234567', 'holds 7 characters, and it takes 8 or more'],
  ['1234567   \n', 'holds 7 characters, and it takes 8 or more'],
])('a file that was damaged is refused, and left as it is: %j', (text, why) => {
  const path = file(text)
  expect(() => keepSecret(path, make, limits)).toThrow(new StartError(`${path} ${why}; put the right one back.`))
  expect(readFileSync(path, 'utf8')).toBe(text)
})

test('an empty one is refused also where nothing more is known of it', () => {
  const path = file('')
  expect(() => keepSecret(path, make)).toThrow(`${path} is empty; put the right one back from a backup.`)
})

test('a folder in its place is refused', () => {
  const path = file()
  mkdirSync(path)
  expect(() => keepSecret(path, make, limits)).toThrow(new StartError(`${path} cannot be read (EISDIR).`))
})

test('a place where it cannot be kept is refused', () => {
  const path = join(file('a file'), 'below')
  expect(() => keepSecret(path, make, limits)).toThrow(new StartError(`${path} cannot be written (ENOTDIR).`))
})
