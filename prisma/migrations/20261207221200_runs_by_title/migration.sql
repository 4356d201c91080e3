-- Outside of a transaction: writes go on while the index is built. Entries of one title share it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_title" ON "runs" ("title");
