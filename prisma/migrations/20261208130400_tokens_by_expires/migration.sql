-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "tokens_expires_pk_idx" ON "tokens" ("expires", "pk");
