-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_created_at_id_idx" ON "runs"("created_at", "id");
