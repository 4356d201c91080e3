-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_submitter_pk_created_at_id_idx" ON "runs"("submitter_pk", "created_at", "id");
