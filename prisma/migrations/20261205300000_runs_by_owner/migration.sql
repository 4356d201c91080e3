-- Outside of a transaction: writes go on while the index is built. Runs without an owner are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_owner" ON "runs" (("options"->>'owner'), "created_at", "id")
    WHERE "options"->>'owner' IS NOT NULL;
