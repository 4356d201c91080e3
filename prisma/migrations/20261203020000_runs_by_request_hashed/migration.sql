-- Outside of a transaction: writes go on while the index is built. It is half as large as one in an order that nothing needs.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_request" ON "runs" USING HASH ("request_id");
