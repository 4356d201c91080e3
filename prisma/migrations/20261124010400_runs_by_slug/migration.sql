-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_slug_created_at_idx" ON "runs"("slug", "created_at");
