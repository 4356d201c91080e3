-- AlterTable
ALTER TABLE "refusals" ADD COLUMN "kind" TEXT NOT NULL DEFAULT 'submission';
