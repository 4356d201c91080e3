-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "groups_skeleton" ON "groups" ("skeleton");
