-- Outside of a transaction: the index before this one takes its place.
DROP INDEX CONCURRENTLY IF EXISTS "users_uuid_key";
