-- Who manages an application or provider, and who made it. Nullable without a default: no row is rewritten.
ALTER TABLE "applications" ADD COLUMN "created_by" INTEGER, ADD COLUMN "owner" VARCHAR(100);
ALTER TABLE "providers" ADD COLUMN "created_by" INTEGER, ADD COLUMN "owner" VARCHAR(100);
