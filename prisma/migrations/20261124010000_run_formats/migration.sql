-- In which format a run was recorded: a worker leaves runs of newer formats to newer workers. A constant default: no row
-- is written.
ALTER TABLE "runs" ADD COLUMN "format" SMALLINT NOT NULL DEFAULT 1;
-- An API of version 0.1.0 beside this version records runs without it.
ALTER TABLE "runs" ALTER COLUMN "kind" SET DEFAULT 'blueprint';

-- When workers of each format took a job, or waited for the migrations of their version.
CREATE TABLE "worker_formats" (
    "format" SMALLINT NOT NULL,
    "consumed_at" TIMESTAMPTZ(3),
    "waiting_at" TIMESTAMPTZ(3),

    CONSTRAINT "worker_formats_pkey" PRIMARY KEY ("format")
);

-- Workers of version 0.1.0 write `consumed_at` alone. Later ones mark their heartbeat with the same time.
ALTER TABLE "queue_heartbeats" ADD COLUMN "marked_at" TIMESTAMPTZ(3);
CREATE FUNCTION "keep_unmarked_heartbeat"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "worker_formats" ("format", "consumed_at") VALUES (1, NEW."consumed_at")
    ON CONFLICT ("format") DO UPDATE SET "consumed_at" = excluded."consumed_at";
  RETURN NULL;
END $$;
CREATE TRIGGER "heartbeats_without_a_format" AFTER INSERT OR UPDATE ON "queue_heartbeats" FOR EACH ROW
  WHEN (NEW."marked_at" IS DISTINCT FROM NEW."consumed_at") EXECUTE FUNCTION "keep_unmarked_heartbeat"();
