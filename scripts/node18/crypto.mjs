// `node:crypto` of the packed program, for Node before 20.12.
import { createHash } from 'node:crypto'

export * from 'node:crypto'

export const hash = (algorithm, data, encoding = 'hex') => {
  const digest = createHash(algorithm).update(data).digest()
  return encoding === 'buffer' ? digest : digest.toString(encoding)
}
