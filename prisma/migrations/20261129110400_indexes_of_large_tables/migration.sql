-- Outside of a transaction: writes go on while each index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "users_username_compared" ON "users" (compared_name("username"));

-- It holds the key, as the next one: pages far inside the list read no rows.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "users_by_username" ON "users" ("username") INCLUDE ("pk");

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "users_by_uuid" ON "users" ("uuid") INCLUDE ("pk");

CREATE INDEX CONCURRENTLY IF NOT EXISTS "groups_name_compared" ON "groups" (compared_name("name"));

-- It holds the key: pages far inside the list read no rows.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "tokens_by_identifier" ON "tokens" ("identifier") INCLUDE ("pk");

-- Runs without a position are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_change" ON "runs" ("changed_in") WHERE "changed_in" IS NOT NULL;
