-- AlterTable
ALTER TABLE "installation" ADD COLUMN "sealed_check" TEXT;

-- AlterTable
ALTER TABLE "runs" ADD COLUMN "document" BYTEA;
ALTER TABLE "runs" ALTER COLUMN "blueprint" DROP NOT NULL;

-- The copy of a document that runs share. No run has one yet, so that this reads the table once and sorts nothing.
CREATE INDEX "runs_with_document" ON "runs" ("document") WHERE "document" IS NOT NULL AND "blueprint" IS NOT NULL;
