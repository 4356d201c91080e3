-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "tokens_search" ON "tokens" USING gin ((lower("identifier" || ' ' || "description")) gin_trgm_ops);
