-- Outside of a transaction: writes go on while the index is built. It holds the key: pages far inside the list read no rows.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "tokens_by_identifier" ON "tokens" ("identifier") INCLUDE ("pk");
