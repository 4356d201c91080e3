-- The last submissions that were refused before they were recorded. It stays small: the oldest go.
CREATE TABLE "refusals" (
    "pk" BIGSERIAL NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "route" TEXT NOT NULL,
    "code" TEXT NOT NULL,
    "status" SMALLINT NOT NULL,
    "user_pk" INTEGER,
    "username" TEXT,
    "request_id" TEXT NOT NULL,
    "title" TEXT,
    "sentence" TEXT NOT NULL,

    CONSTRAINT "refusals_pkey" PRIMARY KEY ("pk")
);
