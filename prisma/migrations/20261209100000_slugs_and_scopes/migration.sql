-- Slugs are as long as names; the models say how long.
-- AlterTable
ALTER TABLE "applications" ALTER COLUMN "slug" SET DATA TYPE TEXT;
ALTER TABLE "flows" ALTER COLUMN "slug" SET DATA TYPE TEXT;

-- The scope by which clients ask for a mapping. Those that are shipped get theirs, as the bootstrap blueprint has it.
-- AlterTable
ALTER TABLE "property_mappings" ADD COLUMN "scope_name" TEXT NOT NULL DEFAULT '';
UPDATE "property_mappings" SET "scope_name" = substring("managed" FROM 'scope-(.*)$')
  WHERE "kind" = 'oauth2' AND "managed" LIKE 'gatewright/oauth2/scope-%';
