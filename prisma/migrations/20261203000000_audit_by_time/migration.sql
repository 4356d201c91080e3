-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_at_idx" ON "audit_rows" USING BRIN ("at");
