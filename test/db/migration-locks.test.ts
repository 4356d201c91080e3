import { expect, test } from 'vitest'
import { migrationNames, migrationScript } from '../../src/db/migrations.ts'
import { longLocks } from '../support/migration-locks.ts'

test.each([
  'CREATE INDEX "users_x" ON "users" ("x");',
  'CREATE UNIQUE INDEX "runs_x" ON runs USING btree ("x");',
  'UPDATE "runs" SET "x" = 1;',
  'DELETE FROM "audit_rows" WHERE "x" = 1;',
  "DO $$ BEGIN EXECUTE format('UPDATE %I SET x = 1', 'users'); END $$;",
  'ALTER TABLE "tokens" ADD CONSTRAINT "x" CHECK ("x" > 0);',
  'ALTER TABLE "tokens" ADD CONSTRAINT "x" FOREIGN KEY ("x") REFERENCES "users"("pk");',
  'ALTER TABLE "users" ALTER COLUMN "x" SET NOT NULL;',
  'ALTER TABLE "users" ALTER COLUMN "x" TYPE BIGINT;',
  'ALTER TABLE "users" ALTER COLUMN "x" SET DATA TYPE BIGINT;',
  'ALTER TABLE "runs" VALIDATE CONSTRAINT "x";',
  'ALTER TABLE "memberships" ADD COLUMN "x" UUID NOT NULL DEFAULT gen_random_uuid();',
  'ALTER TABLE "memberships" ADD COLUMN "x" BIGSERIAL;',
  'LOCK TABLE "users";',
  '-- Outside of a transaction: two.\nSELECT 1; SELECT 2;',
  '-- Outside of a transaction: not repeatable.\nCREATE INDEX CONCURRENTLY "users_x" ON "users" ("x");',
  '-- Outside of a transaction: two.\nDROP INDEX CONCURRENTLY IF EXISTS "a"; DROP INDEX CONCURRENTLY IF EXISTS "b";',
  '-- Outside of a transaction: two.\nDROP INDEX CONCURRENTLY IF EXISTS "a";\n\nDROP INDEX CONCURRENTLY IF EXISTS "b";',
  '-- Outside of a transaction: one portion.\nDO $$ BEGIN LOOP UPDATE "runs" SET "x" = 1; COMMIT; END LOOP; END $$;',
  '-- Outside of a transaction: no commit.\nDO $$ BEGIN LOOP PERFORM 1 FROM "runs" LIMIT 9; END LOOP; END $$;',
])('%s is found', (sql) => {
  expect(longLocks(sql)).toHaveLength(1)
})

test.each([
  'ALTER TABLE "runs" ADD COLUMN "x" SMALLINT NOT NULL DEFAULT 1, ADD COLUMN "y" TEXT DEFAULT \'a (b)\';',
  '-- UPDATE "runs" SET x = 1;\nALTER TABLE "tokens" ADD CONSTRAINT "x" CHECK ("x" > 0) NOT VALID;',
  'CREATE INDEX "x" ON "flows" ("slug"); UPDATE "roles" SET "x" = 1;',
  'CREATE TABLE "user_notes" ("x" TEXT NOT NULL); CREATE INDEX "y" ON "user_notes" ("x");',
  '-- Outside of a transaction: x.\nCREATE INDEX CONCURRENTLY IF NOT EXISTS "x" ON "users" ("x");',
  `-- Outside of a transaction: x.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "x" ON "users" ("x");

-- A second one.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "y" ON "users" ("y");`,
  '-- Outside of a transaction: x.\nALTER TABLE "runs" VALIDATE CONSTRAINT "x";',
  `-- Outside of a transaction: x.
    DO $$ BEGIN LOOP SELECT 1 FROM "runs" LIMIT 2000; UPDATE "runs" SET "x" = 1; COMMIT; END LOOP; END $$;`,
])('%s is no long lock', (sql) => {
  expect(longLocks(sql)).toEqual([])
})

test('migrations do not lock large tables for long', async () => {
  // The first one finds no tables.
  const later = (await migrationNames()).filter((name) => !name.endsWith('_first'))
  expect(later.length).toBeGreaterThan(10)
  for (const name of later) expect(longLocks(await migrationScript(name)), name).toEqual([])
})
