-- Outside of a transaction: writes go on meanwhile.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "users_username_compared" ON "users" (compared_name("username"));
