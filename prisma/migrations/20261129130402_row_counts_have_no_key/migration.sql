-- AlterTable
ALTER TABLE "row_counts" DROP CONSTRAINT "row_counts_pkey",
DROP COLUMN "pk";
