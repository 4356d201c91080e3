-- Each process of the API, with when it was last heard.
CREATE TABLE "servers" (
    "id" UUID NOT NULL,
    "host" VARCHAR(255) NOT NULL,
    "process_id" INTEGER NOT NULL,
    "version" VARCHAR(100) NOT NULL,
    "format" SMALLINT NOT NULL,
    "slots" INTEGER NOT NULL,
    "busy" INTEGER NOT NULL DEFAULT 0,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "taken_at" TIMESTAMPTZ(3),
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),

    CONSTRAINT "servers_pkey" PRIMARY KEY ("id")
);
