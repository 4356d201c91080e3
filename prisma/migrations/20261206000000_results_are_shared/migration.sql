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

ALTER TABLE "runs" ADD COLUMN "shared_result" UUID;
