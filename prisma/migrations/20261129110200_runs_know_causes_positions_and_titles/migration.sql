-- Each attempt of a run that ended without a result. Where it stands in the order in which readers see commits: as below.
CREATE TABLE "run_attempts" (
    "run_id" UUID NOT NULL,
    "attempt" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "cause" VARCHAR(300) NOT NULL,
    "recorded_in" BIGINT DEFAULT ((pg_current_xact_id())::text)::bigint,
    "recorded_after" BIGINT DEFAULT ((pg_snapshot_xmin(pg_current_snapshot()))::text)::bigint,

    CONSTRAINT "run_attempts_pkey" PRIMARY KEY ("run_id", "attempt")
);
CREATE INDEX "run_attempts_by_record" ON "run_attempts" ("recorded_in") WHERE "recorded_in" IS NOT NULL;

-- What runs that changed nothing have in common: their logs and changes, once (docs/adr/0077-runs-share-what-they-did.md).
-- Runs that exist keep their own.
CREATE TABLE "shared_results" (
    "key" UUID NOT NULL,
    "logs" TEXT[],
    "changes" JSONB NOT NULL,
    "used_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "shared_results_pkey" PRIMARY KEY ("key")
);
CREATE INDEX "shared_results_used_at_idx" ON "shared_results"("used_at");

-- By a trigger: so it holds for every statement that changes a state, those of an earlier version included.
CREATE FUNCTION "keep_position_of_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW."changed_in" := pg_current_xact_id()::text::bigint;
  NEW."changed_after" := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
  RETURN NEW;
END $$;

-- Why a run failed. Where a run and the last change of its state stand in the order in which readers see commits
-- (docs/adr/0067-events-follow-what-is-visible.md): the transaction that wrote it, and the oldest one that was not over
-- then. Runs that exist have no position until their state changes. What a plan reports beside its changes.
ALTER TABLE "runs" ADD COLUMN "cause" VARCHAR(300),
ADD COLUMN "recorded_in" BIGINT,
ADD COLUMN "recorded_after" BIGINT,
ADD COLUMN "changed_in" BIGINT,
ADD COLUMN "changed_after" BIGINT,
ADD COLUMN "shared_result" UUID,
ADD COLUMN "notes" JSONB;
ALTER TABLE "runs" ALTER COLUMN "recorded_in" SET DEFAULT ((pg_current_xact_id())::text)::bigint,
ALTER COLUMN "recorded_after" SET DEFAULT ((pg_snapshot_xmin(pg_current_snapshot()))::text)::bigint,
ALTER COLUMN "changed_in" SET DEFAULT ((pg_current_xact_id())::text)::bigint,
ALTER COLUMN "changed_after" SET DEFAULT ((pg_snapshot_xmin(pg_current_snapshot()))::text)::bigint;
CREATE TRIGGER "runs_have_positions" BEFORE UPDATE OF "state" ON "runs"
  FOR EACH ROW WHEN (OLD."state" IS DISTINCT FROM NEW."state") EXECUTE FUNCTION "keep_position_of_change"();
