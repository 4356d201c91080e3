-- AlterTable
ALTER TABLE "flows" ADD COLUMN     "asks_for_consent" BOOLEAN NOT NULL DEFAULT false;
-- The shipped flow that is called so.
UPDATE "flows" SET "asks_for_consent" = true WHERE "pk" = '6f7e0000-0000-4000-8000-000000000102';

-- AlterTable
ALTER TABLE "installation" ADD COLUMN     "changes_since" BIGINT NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint;

-- CreateTable
CREATE TABLE "consumer_changes" (
    "changed_in" BIGINT NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "provider_pk" INTEGER,
    "kind" TEXT,
    "owners" TEXT[] DEFAULT ARRAY[]::TEXT[]
);

-- CreateTable
CREATE TABLE "consumers" (
    "user_pk" INTEGER NOT NULL,
    "kind" TEXT NOT NULL,
    "issuer" VARCHAR(2000),
    "revision" TEXT,
    "seen_at" TIMESTAMPTZ(3),
    "day" DATE,
    "reads" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "consumers_pkey" PRIMARY KEY ("user_pk","kind")
);

-- CreateIndex
CREATE INDEX "consumer_changes_changed_in_idx" ON "consumer_changes"("changed_in");

-- CreateIndex
CREATE INDEX "providers_kind_pk_idx" ON "providers"("kind", "pk");

-- The text by which servers of SAML, LDAP and proxies find a provider. An index by hash takes texts of any length.
CREATE INDEX "providers_by_settings" ON "providers"
  USING hash ((coalesce("settings"->>'issuer', "settings"->>'base_dn', "settings"->>'external_host')))
  WHERE coalesce("settings"->>'issuer', "settings"->>'base_dn', "settings"->>'external_host') IS NOT NULL;

-- AddForeignKey
ALTER TABLE "consumers" ADD CONSTRAINT "consumers_user_pk_fkey" FOREIGN KEY ("user_pk") REFERENCES "users"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- Triggers record what consumers of configurations have to read again, in the transaction that changes it: changes past the service
-- are seen, too. A row is written only when another one is: an apply that changes nothing writes nothing here. The functions have the
-- rights of their owner: the service may write before it gets its rights on the new table. A transaction records a provider once for the
-- same owners.
CREATE FUNCTION "record_consumer_changes"("providers_changed" integer[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO public."consumer_changes" ("provider_pk", "kind", "owners")
    SELECT p."pk", p."kind", array_remove(ARRAY[p."owner"::text], NULL) FROM public."providers" p
    WHERE p."pk" = ANY ("providers_changed") AND NOT EXISTS (SELECT FROM public."consumer_changes" c
      WHERE c."changed_in" = pg_current_xact_id()::text::bigint AND c."provider_pk" = p."pk"
        AND c."owners" @> array_remove(ARRAY[p."owner"::text], NULL))
$$;

CREATE FUNCTION "keep_provider_changes"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM public."record_consumer_changes"(ARRAY(SELECT "pk" FROM "after"));
  ELSIF TG_OP = 'UPDATE' THEN
    -- The readers of the former owner have to forget it.
    INSERT INTO public."consumer_changes" ("provider_pk", "kind", "owners")
      SELECT a."pk", a."kind", ARRAY[b."owner"::text] FROM "after" a JOIN "before" b USING ("pk")
      WHERE b."owner" IS DISTINCT FROM a."owner" AND b."owner" IS NOT NULL;
    PERFORM public."record_consumer_changes"(ARRAY(SELECT a."pk" FROM "after" a JOIN "before" b USING ("pk") WHERE (a.*) IS DISTINCT FROM (b.*)));
  ELSE
    INSERT INTO public."consumer_changes" ("provider_pk", "kind", "owners")
      SELECT b."pk", b."kind", array_remove(ARRAY[b."owner"::text], NULL) FROM "before" b;
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION "keep_application_changes"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
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

-- Of flows, property mappings and key pairs: the providers that refer to them. When these are many, all are read anew.
CREATE FUNCTION "keep_target_changes"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  "changed" uuid[] := ARRAY(SELECT a."pk" FROM "after" a JOIN "before" b USING ("pk") WHERE (a.*) IS DISTINCT FROM (b.*));
  "users" integer[];
BEGIN
  IF "changed" = '{}' THEN
    RETURN NULL;
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

-- TRUNCATE names no rows.
CREATE FUNCTION "forget_consumer_changes"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public."consumer_changes" DEFAULT VALUES;
  RETURN NULL;
END $$;

CREATE TRIGGER "providers_truncate_is_seen" AFTER TRUNCATE ON "providers"
  FOR EACH STATEMENT EXECUTE FUNCTION "forget_consumer_changes"();
CREATE TRIGGER "applications_truncate_is_seen" AFTER TRUNCATE ON "applications"
  FOR EACH STATEMENT EXECUTE FUNCTION "forget_consumer_changes"();
CREATE TRIGGER "backchannel_providers_truncate_is_seen" AFTER TRUNCATE ON "backchannel_providers"
  FOR EACH STATEMENT EXECUTE FUNCTION "forget_consumer_changes"();
CREATE TRIGGER "providers_insert_is_seen" AFTER INSERT ON "providers" REFERENCING NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_provider_changes"();
CREATE TRIGGER "providers_update_is_seen" AFTER UPDATE ON "providers" REFERENCING OLD TABLE AS "before" NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_provider_changes"();
CREATE TRIGGER "providers_delete_is_seen" AFTER DELETE ON "providers" REFERENCING OLD TABLE AS "before"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_provider_changes"();
CREATE TRIGGER "applications_insert_is_seen" AFTER INSERT ON "applications" REFERENCING NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_application_changes"();
CREATE TRIGGER "applications_update_is_seen" AFTER UPDATE ON "applications" REFERENCING OLD TABLE AS "before" NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_application_changes"();
CREATE TRIGGER "applications_delete_is_seen" AFTER DELETE ON "applications" REFERENCING OLD TABLE AS "before"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_application_changes"();
CREATE TRIGGER "backchannel_providers_insert_is_seen" AFTER INSERT ON "backchannel_providers" REFERENCING NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_application_changes"();
CREATE TRIGGER "backchannel_providers_delete_is_seen" AFTER DELETE ON "backchannel_providers" REFERENCING OLD TABLE AS "before"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_application_changes"();
CREATE TRIGGER "backchannel_providers_update_is_seen" AFTER UPDATE ON "backchannel_providers"
  REFERENCING OLD TABLE AS "before" NEW TABLE AS "after" FOR EACH STATEMENT EXECUTE FUNCTION "keep_application_changes"();
CREATE TRIGGER "flows_update_is_seen" AFTER UPDATE ON "flows" REFERENCING OLD TABLE AS "before" NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_target_changes"();
CREATE TRIGGER "property_mappings_update_is_seen" AFTER UPDATE ON "property_mappings" REFERENCING OLD TABLE AS "before" NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_target_changes"();
CREATE TRIGGER "certificate_key_pairs_update_is_seen" AFTER UPDATE ON "certificate_key_pairs" REFERENCING OLD TABLE AS "before" NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_target_changes"();

-- The permissions to read secrets are bound to owners, too. `rightsOf` in src/permissions.ts says the same.
CREATE OR REPLACE FUNCTION "role_rights"(permissions TEXT[], owners TEXT[]) RETURNS TEXT[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN coalesce(cardinality(owners), 0) = 0 THEN permissions ELSE ARRAY(
    SELECT p FROM unnest(permissions) p WHERE p !~ '^((view|add|change|delete)_(application|.*provider)|read_.*provider_secrets)$'
    UNION ALL SELECT p || '@' || o FROM unnest(permissions) p, unnest(owners) o
      WHERE p ~ '^((view|add|change|delete)_(application|.*provider)|read_.*provider_secrets)$') END
$$;
