-- CreateTable
CREATE TABLE "idempotency_keys" (
    "submitter_pk" INTEGER NOT NULL,
    "key" TEXT NOT NULL,
    "request" BYTEA NOT NULL,
    "run_id" UUID NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "idempotency_keys_pkey" PRIMARY KEY ("submitter_pk","key")
);

-- CreateIndex
CREATE INDEX "idempotency_keys_created_at_idx" ON "idempotency_keys"("created_at");
