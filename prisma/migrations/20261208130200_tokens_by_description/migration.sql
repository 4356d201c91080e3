-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "tokens_description_pk_idx" ON "tokens" ("description", "pk");
