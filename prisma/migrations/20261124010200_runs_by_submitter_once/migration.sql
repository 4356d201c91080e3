-- Outside of a transaction: the index before this one takes its place.
DROP INDEX CONCURRENTLY IF EXISTS "runs_submitter_pk_created_at_idx";
