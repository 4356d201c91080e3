-- Outside of a transaction: others do not wait for it. runs_by_request takes its place.
DROP INDEX CONCURRENTLY IF EXISTS "runs_request_id_idx";
