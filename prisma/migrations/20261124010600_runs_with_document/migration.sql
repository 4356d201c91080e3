-- Outside of a transaction: the copy of a document that runs share.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_with_document" ON "runs" ("document") WHERE "document" IS NOT NULL AND "blueprint" IS NOT NULL;
