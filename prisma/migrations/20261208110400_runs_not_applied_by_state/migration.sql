-- Outside of a transaction: what failed, was cancelled or refused, each by itself.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_not_applied_by_state" ON "runs" ("state", "created_at", "id")
    WHERE "state" = 'failed' OR "state" = 'cancelled' OR ("state" = 'done' AND NOT "applied" AND "mode" = 'apply');
