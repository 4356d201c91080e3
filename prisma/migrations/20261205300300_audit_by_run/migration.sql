-- Outside of a transaction: writes go on while the index is built. Only equality is asked for.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_run" ON "audit_rows" USING HASH ("run_id") WHERE "run_id" IS NOT NULL;
