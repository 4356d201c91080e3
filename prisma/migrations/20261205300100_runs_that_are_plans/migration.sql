-- Outside of a transaction: writes go on while the index is built. Applies are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_planned" ON "runs" ("created_at", "id") WHERE "mode" = 'plan';
