CREATE TYPE "run_mode" AS ENUM ('apply', 'plan');
ALTER TABLE "runs" ADD COLUMN "mode" "run_mode" NOT NULL DEFAULT 'apply',
  ADD COLUMN "changes" JSONB,
  ADD COLUMN "plan_tag" TEXT,
  ADD COLUMN "entry_digests" TEXT[] NOT NULL DEFAULT '{}';

-- A plan is rolled back, but a number that a sequence gave away does not come back: a plan does not count rows. PostgreSQL
-- replaces a function as a whole: all but the first IF is as in the first migration.
CREATE OR REPLACE FUNCTION "keep_row_count"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('gatewright.mode', true) = 'plan' THEN
    RETURN NULL;
  END IF;
  IF TG_OP = 'TRUNCATE' THEN
    -- Adding up writes a sum that is not seen from here: this waits for it, and keeps the next one from beginning.
    PERFORM pg_advisory_xact_lock('"row_counts"'::regclass::oid::bigint);
    DELETE FROM "row_counts" WHERE "table_name" = TG_TABLE_NAME;
  ELSIF TG_OP = 'INSERT' THEN
    INSERT INTO "row_counts" ("table_name", "rows") SELECT TG_TABLE_NAME, count(*) FROM "touched" HAVING count(*) > 0;
  ELSE
    INSERT INTO "row_counts" ("table_name", "rows") SELECT TG_TABLE_NAME, -count(*) FROM "touched" HAVING count(*) > 0;
  END IF;
  RETURN NULL;
END $$;
