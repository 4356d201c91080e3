-- Outside of a transaction: what failed, was cancelled or refused, the newest first.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_not_applied" ON "runs" ("created_at", "id")
    WHERE "state" = 'failed' OR "state" = 'cancelled' OR ("state" = 'done' AND NOT "applied" AND "mode" = 'apply');
