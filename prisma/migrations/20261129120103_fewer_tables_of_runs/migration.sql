-- Plots count the rows of runs.
DROP TABLE "run_folds";

DROP TABLE "run_sums";

-- Each run has its own log and changes.
ALTER TABLE "runs" DROP COLUMN "shared_result";

DROP TABLE "shared_results";

-- How far audit rows had become histories: all have.
ALTER TABLE "installation" DROP COLUMN "history_filled",
DROP COLUMN "history_fill_until";

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

-- What was changed past the service is compared with the recorded changes when somebody looks: no change has a digest.
ALTER TABLE "run_objects" DROP COLUMN "digest";

ALTER TABLE "installation" DROP COLUMN "outside_checked_at",
DROP COLUMN "outside_after";

DROP TABLE "outside_changes";

DROP FUNCTION object_digest(bytea, jsonb);

DROP FUNCTION object_state(applications);

DROP FUNCTION object_state(providers);
