-- Outside of a transaction: writes go on meanwhile.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "groups_name_compared" ON "groups" (compared_name("name"));
