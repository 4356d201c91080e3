-- Where a run, the last change of its state, and a failed attempt stand in the order in which readers see commits
-- (docs/adr/0067-events-follow-what-is-visible.md): the transaction that wrote it, and the oldest one that was not over
-- then. Runs that exist have no position until their state changes.
ALTER TABLE "runs" ADD COLUMN "recorded_in" BIGINT,
ADD COLUMN "recorded_after" BIGINT,
ADD COLUMN "changed_in" BIGINT,
ADD COLUMN "changed_after" BIGINT;
ALTER TABLE "runs" ALTER COLUMN "recorded_in" SET DEFAULT ((pg_current_xact_id())::text)::bigint,
ALTER COLUMN "recorded_after" SET DEFAULT ((pg_snapshot_xmin(pg_current_snapshot()))::text)::bigint,
ALTER COLUMN "changed_in" SET DEFAULT ((pg_current_xact_id())::text)::bigint,
ALTER COLUMN "changed_after" SET DEFAULT ((pg_snapshot_xmin(pg_current_snapshot()))::text)::bigint;

-- By a trigger: so it holds for every statement that changes a state, those of an earlier version included.
CREATE FUNCTION "keep_position_of_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW."changed_in" := pg_current_xact_id()::text::bigint;
  NEW."changed_after" := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
  RETURN NEW;
END $$;
CREATE TRIGGER "runs_have_positions" BEFORE UPDATE OF "state" ON "runs"
  FOR EACH ROW WHEN (OLD."state" IS DISTINCT FROM NEW."state") EXECUTE FUNCTION "keep_position_of_change"();

ALTER TABLE "run_attempts" ADD COLUMN "recorded_in" BIGINT,
ADD COLUMN "recorded_after" BIGINT;
ALTER TABLE "run_attempts" ALTER COLUMN "recorded_in" SET DEFAULT ((pg_current_xact_id())::text)::bigint,
ALTER COLUMN "recorded_after" SET DEFAULT ((pg_snapshot_xmin(pg_current_snapshot()))::text)::bigint;
CREATE INDEX "run_attempts_by_record" ON "run_attempts" ("recorded_in") WHERE "recorded_in" IS NOT NULL;
