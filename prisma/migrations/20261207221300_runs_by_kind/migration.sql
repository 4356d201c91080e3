-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_kind" ON "runs" ("kind", "created_at");
