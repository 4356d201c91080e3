-- Outside of a transaction: writes go on meanwhile.
DROP INDEX CONCURRENTLY IF EXISTS "users_username_folded";
