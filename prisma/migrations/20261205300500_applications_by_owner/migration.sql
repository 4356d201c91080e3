-- Outside of a transaction: writes go on while the index is built. Applications without an owner are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "applications_by_owner" ON "applications" ("owner", "name", "pk") WHERE "owner" IS NOT NULL;
