-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_time" ON "audit_rows" ("at", "pk");
