-- AlterTable
ALTER TABLE "flows" ADD COLUMN     "asks_for_consent" BOOLEAN NOT NULL DEFAULT false;
-- The shipped flow that is called so.
UPDATE "flows" SET "asks_for_consent" = true WHERE "pk" = '6f7e0000-0000-4000-8000-000000000102';

-- AlterTable
ALTER TABLE "installation" ADD COLUMN     "changes_since" BIGINT NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint;

-- CreateTable
CREATE TABLE "consumer_changes" (
    "source" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "changed_in" BIGINT NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "kind" TEXT,
    "owners" TEXT[] DEFAULT ARRAY[]::TEXT[],

    CONSTRAINT "consumer_changes_pkey" PRIMARY KEY ("source","key")
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

-- The text by which servers of SAML, LDAP and proxies find a provider. An index by hash takes texts of any length.
CREATE INDEX "providers_by_settings" ON "providers"
  USING hash ((coalesce("settings"->>'issuer', "settings"->>'base_dn', "settings"->>'external_host')))
  WHERE coalesce("settings"->>'issuer', "settings"->>'base_dn', "settings"->>'external_host') IS NOT NULL;

-- AddForeignKey
ALTER TABLE "consumers" ADD CONSTRAINT "consumers_user_pk_fkey" FOREIGN KEY ("user_pk") REFERENCES "users"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- Triggers record what consumers of configurations have to read again, in the transaction that changes it: changes past the service
-- are seen, too. A row is written only when another one is: an apply that changes nothing writes nothing here. The functions have the
-- rights of their owner: the service may write before it gets its rights on the new table.
CREATE FUNCTION "record_consumer_changes"("providers_changed" integer[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO public."consumer_changes" ("source", "key", "kind", "owners")
    SELECT 'provider', p."pk"::text, p."kind", array_remove(ARRAY[p."owner"::text], NULL)
    FROM public."providers" p WHERE p."pk" = ANY ("providers_changed") ORDER BY p."pk"
    ON CONFLICT ("source", "key") DO UPDATE SET "changed_in" = DEFAULT, "at" = DEFAULT,
      "owners" = ARRAY(SELECT unnest("consumer_changes"."owners") UNION SELECT unnest(excluded."owners") ORDER BY 1)
      -- One transaction writes it once.
      WHERE "consumer_changes"."changed_in" <> excluded."changed_in" OR NOT excluded."owners" <@ "consumer_changes"."owners"
$$;

CREATE FUNCTION "keep_provider_changes"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM public."record_consumer_changes"(ARRAY(SELECT "pk" FROM "after"));
  ELSIF TG_OP = 'UPDATE' THEN
    PERFORM public."record_consumer_changes"(ARRAY(SELECT a."pk" FROM "after" a JOIN "before" b USING ("pk") WHERE (a.*) IS DISTINCT FROM (b.*)));
    -- The readers of the former owner have to forget it.
    UPDATE public."consumer_changes" c SET "owners" = c."owners" || b."owner"::text
      FROM "before" b WHERE c."source" = 'provider' AND c."key" = b."pk"::text AND b."owner" IS NOT NULL
        AND b."owner"::text <> ALL (c."owners");
  ELSE
    INSERT INTO public."consumer_changes" ("source", "key", "kind", "owners")
      SELECT 'provider', b."pk"::text, b."kind", array_remove(ARRAY[b."owner"::text], NULL) FROM "before" b ORDER BY b."pk"
      ON CONFLICT ("source", "key") DO UPDATE SET "changed_in" = DEFAULT, "at" = DEFAULT,
        "owners" = ARRAY(SELECT unnest("consumer_changes"."owners") UNION SELECT unnest(excluded."owners") ORDER BY 1);
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION "keep_application_changes"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM public."record_consumer_changes"(ARRAY(SELECT "provider_pk" FROM "after"));
  ELSIF TG_OP = 'UPDATE' THEN
    PERFORM public."record_consumer_changes"(ARRAY(
      WITH "changed" AS (SELECT a."pk", a."provider_pk" AS "is", b."provider_pk" AS "was"
        FROM "after" a JOIN "before" b USING ("pk") WHERE (a.*) IS DISTINCT FROM (b.*))
      SELECT "is" FROM "changed" UNION SELECT "was" FROM "changed"
      UNION SELECT s."provider_pk" FROM "changed" c JOIN public."backchannel_providers" s ON s."application_pk" = c."pk"));
  ELSE
    PERFORM public."record_consumer_changes"(ARRAY(SELECT "provider_pk" FROM "before"));
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION "keep_target_changes"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public."consumer_changes" ("source", "key")
    SELECT TG_ARGV[0], a."pk"::text FROM "after" a JOIN "before" b USING ("pk") WHERE (a.*) IS DISTINCT FROM (b.*) ORDER BY a."pk"
    ON CONFLICT ("source", "key") DO UPDATE SET "changed_in" = DEFAULT, "at" = DEFAULT;
  RETURN NULL;
END $$;

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
CREATE TRIGGER "flows_update_is_seen" AFTER UPDATE ON "flows" REFERENCING OLD TABLE AS "before" NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_target_changes"('flow');
CREATE TRIGGER "property_mappings_update_is_seen" AFTER UPDATE ON "property_mappings" REFERENCING OLD TABLE AS "before" NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_target_changes"('propertymapping');
CREATE TRIGGER "certificate_key_pairs_update_is_seen" AFTER UPDATE ON "certificate_key_pairs" REFERENCING OLD TABLE AS "before" NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "keep_target_changes"('certificatekeypair');

-- The permissions to read secrets are bound to owners, too. `rightsOf` in src/permissions.ts says the same.
CREATE OR REPLACE FUNCTION "role_rights"(permissions TEXT[], owners TEXT[]) RETURNS TEXT[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN coalesce(cardinality(owners), 0) = 0 THEN permissions ELSE ARRAY(
    SELECT p FROM unnest(permissions) p WHERE p !~ '^((view|add|change|delete)_(application|.*provider)|read_.*provider_secrets)$'
    UNION ALL SELECT p || '@' || o FROM unnest(permissions) p, unnest(owners) o
      WHERE p ~ '^((view|add|change|delete)_(application|.*provider)|read_.*provider_secrets)$') END
$$;
