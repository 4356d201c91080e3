-- Outside of a transaction: writes go on while the index is built. Only what was done while impersonating is in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_real_user" ON "audit_rows" ("real_pk") WHERE "real_pk" IS NOT NULL;
