-- Outside of a transaction: writes go on while the index is built. It has the fields that lists filter by, so that a walk
-- along the titles reads no run that does not match. Runs of one title that are alike share an entry.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_title_with_fields" ON "runs" ("title", "kind", "state", "mode", "reason");
