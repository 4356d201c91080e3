-- Outside of a transaction: writes go on while the index is built. Rows of one user share an entry.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_user" ON "audit_rows" ("actor_pk");
