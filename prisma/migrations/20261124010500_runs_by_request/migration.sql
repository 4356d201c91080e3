-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_request_id_idx" ON "runs"("request_id");
