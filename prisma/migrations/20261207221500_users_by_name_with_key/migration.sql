-- Outside of a transaction: writes go on while the index is built. It holds the key: pages far inside the list read no rows.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "users_by_username" ON "users" ("username") INCLUDE ("pk");
