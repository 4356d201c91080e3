-- Each run has its own log and changes.
ALTER TABLE "runs" DROP COLUMN "shared_result";

DROP TABLE "shared_results";
