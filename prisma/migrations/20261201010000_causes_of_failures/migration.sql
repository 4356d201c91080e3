-- Why a run failed, and each of its attempts that ended without a result.
ALTER TABLE "runs" ADD COLUMN "cause" VARCHAR(300);
CREATE TABLE "run_attempts" (
    "run_id" UUID NOT NULL,
    "attempt" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "cause" VARCHAR(300) NOT NULL,

    CONSTRAINT "run_attempts_pkey" PRIMARY KEY ("run_id", "attempt")
);
