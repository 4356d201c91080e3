-- Outside of a transaction: writes go on while it is built. Runs that no job submitted are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_commit" ON "runs" ((options #>> '{pipeline,commit}') text_pattern_ops) WHERE (options #>> '{pipeline,commit}') IS NOT NULL;
