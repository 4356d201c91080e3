-- Outside of a transaction: the index before this one takes its place.
DROP INDEX CONCURRENTLY IF EXISTS "runs_by_reason";
