-- Outside of a transaction: writes go on while the index is built. Few groups have settings, and attributes may be long.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "groups_with_settings" ON "groups" ("pk") WHERE ("attributes" -> 'settings') IS NOT NULL;
