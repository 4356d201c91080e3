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

-- AlterTable
ALTER TABLE "stack_members" ADD COLUMN     "label" VARCHAR(100);

-- A provider that gets a target in a transaction which is still open is not visible yet. But that transaction holds the target FOR KEY
-- SHARE, for the foreign key: FOR UPDATE waits for it, lets no other one begin, and the next statement sees what it wrote.
CREATE OR REPLACE FUNCTION "keep_target_changes"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  "changed" uuid[] := ARRAY(SELECT a."pk" FROM "after" a JOIN "before" b USING ("pk") WHERE (a.*) IS DISTINCT FROM (b.*));
  "users" integer[];
BEGIN
  IF "changed" = '{}' THEN
    RETURN NULL;
  END IF;
  IF TG_TABLE_NAME = 'flows' THEN
    PERFORM FROM public."flows" WHERE "pk" = ANY ("changed") ORDER BY "pk" FOR UPDATE;
  ELSIF TG_TABLE_NAME = 'property_mappings' THEN
    PERFORM FROM public."property_mappings" WHERE "pk" = ANY ("changed") ORDER BY "pk" FOR UPDATE;
  ELSE
    PERFORM FROM public."certificate_key_pairs" WHERE "pk" = ANY ("changed") ORDER BY "pk" FOR UPDATE;
  END IF;
  "users" := ARRAY(SELECT "pk" FROM public."providers" WHERE TG_TABLE_NAME = 'flows'
      AND ("authentication_flow" = ANY ("changed") OR "authorization_flow" = ANY ("changed") OR "invalidation_flow" = ANY ("changed"))
    UNION SELECT "provider_pk" FROM public."provider_references"
      WHERE "flow_pk" = ANY ("changed") OR "property_mapping_pk" = ANY ("changed") OR "certificate_key_pair_pk" = ANY ("changed")
    LIMIT 1001);
  IF cardinality("users") > 1000 THEN
    INSERT INTO public."consumer_changes" DEFAULT VALUES;
  ELSE
    PERFORM public."record_consumer_changes"("users");
  END IF;
  RETURN NULL;
END $$;

-- The same of an application that a provider gets in the backchannel: here the provider's transaction waits, which is rare, and no
-- change of an application has another lock.
CREATE OR REPLACE FUNCTION "keep_application_changes"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_TABLE_NAME = 'backchannel_providers' AND TG_OP <> 'DELETE' THEN
    PERFORM FROM public."applications" WHERE "pk" IN (SELECT "application_pk" FROM "after") ORDER BY "pk" FOR SHARE;
  END IF;
  IF TG_OP = 'INSERT' THEN
    PERFORM public."record_consumer_changes"(ARRAY(SELECT "provider_pk" FROM "after"));
  ELSIF TG_OP = 'DELETE' THEN
    PERFORM public."record_consumer_changes"(ARRAY(SELECT "provider_pk" FROM "before"));
  ELSIF TG_TABLE_NAME = 'backchannel_providers' THEN
    PERFORM public."record_consumer_changes"(ARRAY(SELECT "provider_pk" FROM "after" UNION SELECT "provider_pk" FROM "before"));
  ELSE
    PERFORM public."record_consumer_changes"(ARRAY(
      WITH "changed" AS (SELECT a."pk", a."provider_pk" AS "is", b."provider_pk" AS "was"
        FROM "after" a JOIN "before" b USING ("pk") WHERE (a.*) IS DISTINCT FROM (b.*))
      SELECT "is" FROM "changed" UNION SELECT "was" FROM "changed"
      UNION SELECT s."provider_pk" FROM "changed" c JOIN public."backchannel_providers" s ON s."application_pk" = c."pk"));
  END IF;
  RETURN NULL;
END $$;
