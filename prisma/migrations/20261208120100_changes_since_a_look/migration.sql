-- The oldest transaction that was not over when a worker looked for what was changed past the service. The next look is at once.
ALTER TABLE "installation" ADD COLUMN "outside_after" BIGINT;
UPDATE "installation" SET "outside_checked_at" = NULL;
