-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "groups_name_folded" ON "groups" (lower("name"));
