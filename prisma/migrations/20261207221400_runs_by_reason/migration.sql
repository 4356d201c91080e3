-- Outside of a transaction: writes go on while the index is built. Runs that were applied are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_reason" ON "runs" ("reason", "created_at") WHERE "reason" IS NOT NULL;
