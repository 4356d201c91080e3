-- Outside of a transaction: writes go on meanwhile.
DROP INDEX CONCURRENTLY IF EXISTS "groups_name_folded";
