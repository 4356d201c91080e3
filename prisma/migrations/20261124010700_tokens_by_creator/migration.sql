-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "tokens_created_by_idx" ON "tokens"("created_by");
