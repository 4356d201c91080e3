-- CreateTable
CREATE TABLE "trusted_issuers" (
    "pk" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "issuer" TEXT NOT NULL,
    "audience" TEXT NOT NULL,
    "jwks" JSONB,
    "algorithms" TEXT[],
    "clock_skew" INTEGER NOT NULL,
    "rules" JSONB NOT NULL,
    "ceilings" JSONB NOT NULL DEFAULT '[]',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "trusted_issuers_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "exchanged_tokens" (
    "pk" UUID NOT NULL,
    "key_hash" BYTEA NOT NULL,
    "user_pk" INTEGER NOT NULL,
    "issuer_pk" UUID NOT NULL,
    "rule" JSONB NOT NULL,
    "ceiling" JSONB,
    "pipeline" JSONB NOT NULL,
    "identity" TEXT NOT NULL,
    "trust" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "exchanged_tokens_pkey" PRIMARY KEY ("pk")
);

-- CreateIndex
CREATE UNIQUE INDEX "trusted_issuers_name_key" ON "trusted_issuers"("name");

-- CreateIndex
CREATE UNIQUE INDEX "trusted_issuers_issuer_key" ON "trusted_issuers"("issuer");

-- Names of others are found as names compare.
CREATE INDEX "trusted_issuers_name_compared" ON "trusted_issuers" (compared_name("name"));

-- CreateIndex
CREATE UNIQUE INDEX "exchanged_tokens_key_hash_key" ON "exchanged_tokens"("key_hash");

-- CreateIndex
CREATE INDEX "exchanged_tokens_issuer_pk_identity_idx" ON "exchanged_tokens"("issuer_pk", "identity");

-- CreateIndex
CREATE INDEX "exchanged_tokens_user_pk_expires_idx" ON "exchanged_tokens"("user_pk", "expires");

-- CreateIndex
CREATE INDEX "exchanged_tokens_created_at_idx" ON "exchanged_tokens"("created_at");

-- AddForeignKey
ALTER TABLE "exchanged_tokens" ADD CONSTRAINT "exchanged_tokens_user_pk_fkey" FOREIGN KEY ("user_pk") REFERENCES "users"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "exchanged_tokens" ADD CONSTRAINT "exchanged_tokens_issuer_pk_fkey" FOREIGN KEY ("issuer_pk") REFERENCES "trusted_issuers"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- What the tokens of an issuer are trusted by, beside its rules.
CREATE FUNCTION "trust_of"("of" "trusted_issuers") RETURNS text LANGUAGE sql IMMUTABLE
  AS $$ SELECT md5(jsonb_build_array("of"."issuer", "of"."audience", "of"."jwks", "of"."algorithms", "of"."ceilings")::text) $$;

-- All tokens that may be sent as bearer tokens, with what decides whether they authenticate. That of a job needs its issuer, its rule
-- and the name of its user as they were.
CREATE VIEW "bearer_tokens" AS
  SELECT "pk", "key_hash", "user_pk", "ceiling", "identifier", "expiring", "expires", NULL::jsonb AS "pipeline"
    FROM "tokens" WHERE "intent" = 'api'
  UNION ALL
  SELECT e."pk", e."key_hash", e."user_pk", e."ceiling", NULL, true, e."expires", e."pipeline"
    FROM "exchanged_tokens" e JOIN "trusted_issuers" i ON i."pk" = e."issuer_pk" AND "trust_of"(i) = e."trust"
    JOIN "users" u ON u."pk" = e."user_pk" AND u."username" = e."rule"->>'user'
    WHERE EXISTS (SELECT FROM jsonb_array_elements(i."rules") r WHERE r = e."rule");
