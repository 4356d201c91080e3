import { expect, test } from 'vitest'
import { isSameOrigin } from '../../src/dashboard/session.ts'

test.each([
  ['http://127.0.0.1:9000', '127.0.0.1:9000', true],
  ['https://id.example.com', 'id.example.com', true],
  ['https://id.example.com', 'ID.example.com', true],
  ['https://evil.example.com', 'id.example.com', false],
  ['http://127.0.0.1:9001', '127.0.0.1:9000', false],
  ['https://id.example.com.evil.com', 'id.example.com', false],
  ['null', 'id.example.com', false],
  ['', '', false],
  ['file://id.example.com', 'id.example.com', false],
  [undefined, 'id.example.com', false],
  ['https://id.example.com', undefined, false],
])('the origin %s is that of host %s: %s', (origin, host, same) => {
  expect(isSameOrigin(origin, host)).toBe(same)
})
