-- Outside of a transaction: the index before this one takes its place.
DROP INDEX CONCURRENTLY IF EXISTS "tokens_identifier_key";
