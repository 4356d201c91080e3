-- A session of the dashboard has a row, so that logging out ends it.
CREATE TABLE "dashboard_sessions" (
    "pk" UUID NOT NULL,
    "token_pk" UUID NOT NULL,
    "expires" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "dashboard_sessions_pkey" PRIMARY KEY ("pk")
);

-- CreateIndex
CREATE INDEX "dashboard_sessions_token_pk_idx" ON "dashboard_sessions"("token_pk");

-- CreateIndex
CREATE INDEX "dashboard_sessions_expires_idx" ON "dashboard_sessions"("expires");

-- AddForeignKey
ALTER TABLE "dashboard_sessions" ADD CONSTRAINT "dashboard_sessions_token_pk_fkey" FOREIGN KEY ("token_pk") REFERENCES "tokens"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- Who paused the queue on the dashboard, and when.
CREATE TABLE "queue_pauses" (
    "queue" TEXT NOT NULL,
    "paused_by" TEXT NOT NULL,
    "paused_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "queue_pauses_pkey" PRIMARY KEY ("queue")
);
