-- Outside of a transaction: writes go on while it is built. Audit rows without objects are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_object" ON "audit_rows" USING gin ("objects") WHERE "objects" IS NOT NULL;
