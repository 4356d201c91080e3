-- What became of the submissions of each minute, hour and day, for plots of more than an hour. Maintenance folds runs into
-- it, and it outlives them (docs/adr/0068-plots-read-folded-runs.md).
CREATE TABLE "run_sums" (
    "step_s" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "series" VARCHAR(20) NOT NULL,
    "bucket" SMALLINT NOT NULL,
    "runs" INTEGER NOT NULL,

    CONSTRAINT "run_sums_pkey" PRIMARY KEY ("step_s", "at", "series", "bucket")
);

-- Until when runs are folded: one row.
CREATE TABLE "run_folds" (
    "singleton" BOOLEAN NOT NULL DEFAULT true,
    "until" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "run_folds_pkey" PRIMARY KEY ("singleton"),
    CONSTRAINT "run_folds_singleton" CHECK ("singleton")
);
INSERT INTO "run_folds" ("until")
    SELECT date_bin('1 minute', coalesce(min("created_at"), now()), 'epoch') FROM "runs";
