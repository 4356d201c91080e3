-- Outside of a transaction: the table may be large (docs/adr/0039-large-tables-migrate-outside-of-a-transaction.md).
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_plan_tag" ON "runs" ("plan_tag") WHERE "plan_tag" IS NOT NULL;
