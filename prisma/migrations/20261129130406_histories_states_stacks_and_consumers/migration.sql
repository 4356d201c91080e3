DROP TABLE "run_objects";

-- The history of each object. A condition on `objects` finds its rows by the index.
CREATE VIEW "object_changes" AS
  SELECT a."pk" AS "audit_pk", (c.position - 1)::integer AS "position", a."at", a."run_id", a."objects",
    c.value->>'model' AS "model", c.value->>'key' AS "key", c.value->'object'->>'name' AS "name",
    c.value->'object'->>'was' AS "was", c.value->'object'->>'owner' AS "owner", c.value->>'action' AS "action",
    (c.value->'object'->>'change')::integer AS "change", c.value->'object'->'fields' AS "fields"
  FROM "audit_rows" a CROSS JOIN LATERAL jsonb_array_elements(a."changes") WITH ORDINALITY AS c(value, position)
  WHERE a."objects" IS NOT NULL AND jsonb_exists(c.value, 'object');

-- The keys are found first, so that no plan joins a whole table: a plan for any number of rows expects that LIMIT leaves a
-- tenth of it. And a younger row between old ones, as of a clock that was set back, does not end the work: it goes on
-- until a part of the table has no old row, or the portion is full.
CREATE OR REPLACE FUNCTION "delete_old_audit_rows"("days" integer, "portion" integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  "cutoff" timestamptz := now() - make_interval(days => "days");
  "after" bigint := 0;
  "old" bigint[];
  "deleted" integer := 0;
BEGIN
  IF "days" < 30 THEN
    RAISE EXCEPTION 'audit rows are kept for 30 days or more' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- In the order of their keys, which is that of their times: the table needs no index for this.
  FOR part IN 1..20 LOOP
    SELECT max("pk"), (array_agg("pk" ORDER BY "pk") FILTER (WHERE "at" < "cutoff"))[1:"portion" - "deleted"]
      INTO "after", "old"
      FROM (SELECT "pk", "at" FROM public."audit_rows" WHERE "pk" > "after" ORDER BY "pk" LIMIT 1000) first;
    EXIT WHEN "old" IS NULL;
    WITH gone AS (DELETE FROM public."audit_rows" WHERE "pk" = ANY ("old") RETURNING "pk")
    SELECT "deleted" + count(*) INTO "deleted" FROM gone;
    EXIT WHEN "deleted" >= "portion";
  END LOOP;
  RETURN "deleted";
END $$;

ALTER TABLE "installation" ADD COLUMN     "compared_at" TIMESTAMPTZ(3);

CREATE TABLE "application_states" (
    "slug" TEXT NOT NULL,
    "failing_since" TIMESTAMPTZ(3),
    "failing_run" UUID,
    "outside" TEXT[] DEFAULT ARRAY[]::TEXT[],

    CONSTRAINT "application_states_pkey" PRIMARY KEY ("slug")
);

-- A run that ends says of each application that it names whether it was applied: on every path, of a worker of an earlier
-- version too.
CREATE FUNCTION "keep_application_states"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  "named" text[] := coalesce(ARRAY[NEW."slug"], '{}');
BEGIN
  IF NEW."slug" IS NULL THEN
    "named" := ARRAY(SELECT jsonb_array_elements_text(NEW."options"->'applications') ORDER BY 1);
  END IF;
  IF NEW."applied" THEN
    UPDATE "application_states" SET "failing_since" = NULL, "failing_run" = NULL
      WHERE "slug" = ANY ("named") AND "failing_since" IS NOT NULL;
  ELSE
    INSERT INTO "application_states" AS s ("slug", "failing_since", "failing_run")
      SELECT each, now(), NEW."id" FROM unnest("named") each
      ON CONFLICT ("slug") DO UPDATE SET "failing_run" = NEW."id",
        "failing_since" = coalesce(s."failing_since", EXCLUDED."failing_since");
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "runs_say_states" AFTER INSERT OR UPDATE OF "state" ON "runs" FOR EACH ROW
  WHEN (NEW."state" <> 'queued' AND NEW."mode" = 'apply' AND (NEW."slug" IS NOT NULL OR jsonb_exists(NEW."options", 'applications')))
  EXECUTE FUNCTION "keep_application_states"();

ALTER TABLE "refusals" ADD COLUMN "kind" TEXT NOT NULL DEFAULT 'submission';

-- A run that a user cancelled says nothing of the applications that it names. A run of one application names the slug that it had, too.
CREATE OR REPLACE FUNCTION "keep_application_states"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  "named" text[] := ARRAY(
    SELECT NEW."slug" WHERE NEW."slug" IS NOT NULL UNION SELECT jsonb_array_elements_text(NEW."options"->'applications') ORDER BY 1);
BEGIN
  IF NEW."applied" THEN
    UPDATE "application_states" SET "failing_since" = NULL, "failing_run" = NULL
      WHERE "slug" = ANY ("named") AND "failing_since" IS NOT NULL;
  ELSIF NOT jsonb_exists(NEW."options", 'cancelled_by') THEN
    INSERT INTO "application_states" AS s ("slug", "failing_since", "failing_run")
      SELECT each, now(), NEW."id" FROM unnest("named") each
      ON CONFLICT ("slug") DO UPDATE SET "failing_run" = NEW."id",
        "failing_since" = coalesce(s."failing_since", EXCLUDED."failing_since");
  END IF;
  RETURN NULL;
END $$;

-- The state of an application goes with it: a new one under its slug has none of it.
CREATE FUNCTION "move_application_state"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM "application_states" WHERE "slug" = NEW."slug";
    UPDATE "application_states" SET "slug" = NEW."slug" WHERE "slug" = OLD."slug";
  ELSE
    DELETE FROM "application_states" WHERE "slug" = OLD."slug";
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "applications_move_states" AFTER UPDATE OF "slug" ON "applications" FOR EACH ROW
  WHEN (OLD."slug" <> NEW."slug") EXECUTE FUNCTION "move_application_state"();
CREATE TRIGGER "applications_end_states" AFTER DELETE ON "applications" FOR EACH ROW EXECUTE FUNCTION "move_application_state"();

-- AlterTable
ALTER TABLE "application_states" ADD COLUMN "gone_pk" UUID,
ADD COLUMN "owner" TEXT;

-- A deletion leaves the key and the owner of the application: workers look whether the service recorded it.
CREATE OR REPLACE FUNCTION "move_application_state"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM "application_states" WHERE "slug" = NEW."slug";
    UPDATE "application_states" SET "slug" = NEW."slug", "gone_pk" = NULL WHERE "slug" = OLD."slug";
  ELSE
    INSERT INTO "application_states" ("slug", "gone_pk", "owner") VALUES (OLD."slug", OLD."pk", OLD."owner")
      ON CONFLICT ("slug") DO UPDATE SET "failing_since" = NULL, "failing_run" = NULL, "outside" = DEFAULT,
        "gone_pk" = EXCLUDED."gone_pk", "owner" = EXCLUDED."owner";
  END IF;
  RETURN NULL;
END $$;

-- AlterTable
ALTER TABLE "row_counts" DROP CONSTRAINT "row_counts_pkey",
DROP COLUMN "pk";
-- AlterTable
ALTER TABLE "tokens" ADD COLUMN "stacks" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- AlterTable
ALTER TABLE "runs" DROP COLUMN "notes",
ADD COLUMN "errors" JSONB;

-- CreateTable
CREATE TABLE "stacks" (
    "name" VARCHAR(100) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "run" UUID,
    "run_before" UUID,

    CONSTRAINT "stacks_pkey" PRIMARY KEY ("name")
);

-- CreateTable
CREATE TABLE "stack_members" (
    "model" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "stack" VARCHAR(100) NOT NULL,
    "fields" TEXT[],
    "retain" BOOLEAN NOT NULL DEFAULT false,
    "left_at" TIMESTAMPTZ(3),

    CONSTRAINT "stack_members_pkey" PRIMARY KEY ("model","key")
);

-- CreateIndex
CREATE INDEX "stack_members_stack_idx" ON "stack_members"("stack");

-- AddForeignKey
ALTER TABLE "stack_members" ADD CONSTRAINT "stack_members_stack_fkey" FOREIGN KEY ("stack") REFERENCES "stacks"("name") ON DELETE CASCADE ON UPDATE CASCADE;

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
