-- Outside of a transaction: as that of names.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "users_by_uuid" ON "users" ("uuid") INCLUDE ("pk");
