-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "tokens_intent_pk_idx" ON "tokens" ("intent", "pk");
