-- Outside of a transaction: writes go on while the index is built. Only runs whose entries name owners are in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_owners" ON "runs" USING gin (("options"->'owners') jsonb_path_ops)
    WHERE "options"->'owners' IS NOT NULL;
