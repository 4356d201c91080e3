-- Outside of a transaction: writes go on while the index is built. It holds the key: other orders sort it without the rows.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_reason_with_key" ON "runs" ("reason", "created_at", "id") WHERE "reason" IS NOT NULL;
