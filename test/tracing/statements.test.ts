import { expect, test } from 'vitest'
import { summaryOf } from '../../src/tracing/statements.ts'

test.each([
  ['SELECT 1', 'SELECT'],
  ['SELECT * FROM users WHERE username = $1', 'SELECT users'],
  ['select "public"."users"."pk" from "public"."users" where 1=1', 'SELECT users'],
  ['SELECT extract(epoch FROM now()) FROM runs r FOR UPDATE', 'SELECT runs'],
  ['SELECT 1 FROM runs FOR NO KEY UPDATE SKIP LOCKED', 'SELECT runs'],
  ['WITH a AS (INSERT INTO runs (id) VALUES ($1) RETURNING id) SELECT id FROM a', 'INSERT runs'],
  ['INSERT INTO "public"."tokens" ("key") VALUES ($1) ON CONFLICT DO UPDATE SET x = 1', 'INSERT tokens'],
  ['UPDATE runs SET state = $1 WHERE id = $2', 'UPDATE runs'],
  ['DELETE FROM audit_rows WHERE at < $1', 'DELETE audit_rows'],
  ['/* unprepared */ SELECT pk FROM groups', 'SELECT groups'],
  ['commit', 'COMMIT'],
  ["SET LOCAL lock_timeout = '1s'", 'SET'],
  ['', 'UNKNOWN'],
])('%s -> %s', (text, summary) => {
  expect(summaryOf(text)).toBe(summary)
})
