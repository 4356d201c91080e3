-- What a plan reports beside its changes.
ALTER TABLE "runs" ADD COLUMN "notes" JSONB;
