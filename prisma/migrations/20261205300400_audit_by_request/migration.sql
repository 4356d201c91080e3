-- Outside of a transaction: writes go on while the index is built. Only equality is asked for.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_request" ON "audit_rows" USING HASH ("request_id");
