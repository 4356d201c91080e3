-- AlterTable
ALTER TABLE "installation" ADD COLUMN "sealed_check" TEXT;

-- AlterTable
ALTER TABLE "runs" ADD COLUMN "document" BYTEA;
ALTER TABLE "runs" ALTER COLUMN "blueprint" DROP NOT NULL;

-- Unique names are unique in all cases of their letters. Rows that already differ in case alone stay: the service compares,
-- behind a lock of the name, and these indexes only find. Those of large tables are in later migrations.
CREATE INDEX "roles_name_folded" ON "roles" (lower("name"));
CREATE INDEX "applications_slug_folded" ON "applications" (lower("slug"));
CREATE INDEX "providers_name_folded" ON "providers" (lower("name"));
CREATE INDEX "flows_slug_folded" ON "flows" (lower("slug"));
CREATE INDEX "certificate_key_pairs_name_folded" ON "certificate_key_pairs" (lower("name"));
