-- DropTable
DROP TABLE "run_folds";

-- DropTable
DROP TABLE "run_sums";
