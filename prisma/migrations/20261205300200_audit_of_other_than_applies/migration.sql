-- Outside of a transaction: writes go on while the index is built. Applies, of which there are most, are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_of_other" ON "audit_rows" ("pk") WHERE "action" <> 'apply';
