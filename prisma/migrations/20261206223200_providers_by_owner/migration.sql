-- Outside of a transaction: writes go on while the index is built. Providers without an owner are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "providers_by_owner" ON "providers" ("owner", "name", "pk") WHERE "owner" IS NOT NULL;
