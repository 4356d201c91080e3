-- Streams of events needed more than the transaction of the last change: requests that wait for one do not.
CREATE OR REPLACE FUNCTION "keep_position_of_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW."changed_in" := pg_current_xact_id()::text::bigint;
  RETURN NEW;
END $$;

ALTER TABLE "runs" DROP COLUMN "recorded_in",
DROP COLUMN "recorded_after",
DROP COLUMN "changed_after";

ALTER TABLE "run_attempts" DROP COLUMN "recorded_after";
