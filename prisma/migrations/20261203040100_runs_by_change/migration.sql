-- Outside of a transaction: writes go on while the index is built. Runs without a position are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_change" ON "runs" ("changed_in") WHERE "changed_in" IS NOT NULL;
