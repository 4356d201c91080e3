-- Trigrams make `search` (contains, any case) an index look-up. A trusted extension: the database's owner may create it.
CREATE EXTENSION IF NOT EXISTS "pg_trgm";

-- CreateEnum
CREATE TYPE "user_type" AS ENUM ('external', 'internal', 'internal_service_account', 'service_account');

-- CreateEnum
CREATE TYPE "token_intent" AS ENUM ('verification', 'api', 'recovery', 'app_password');

-- CreateEnum
CREATE TYPE "flow_designation" AS ENUM ('authentication', 'authorization', 'enrollment', 'invalidation', 'recovery', 'stage_configuration', 'unenrollment');

-- CreateEnum
CREATE TYPE "policy_engine_mode" AS ENUM ('all', 'any');

-- CreateEnum
CREATE TYPE "run_state" AS ENUM ('queued', 'done', 'failed', 'cancelled');

-- CreateTable
CREATE TABLE "installation" (
    "singleton" BOOLEAN NOT NULL DEFAULT true,
    "id" UUID NOT NULL,
    "bootstrapped_at" TIMESTAMPTZ(3),

    CONSTRAINT "installation_pkey" PRIMARY KEY ("singleton")
);

-- CreateTable
CREATE TABLE "users" (
    "pk" SERIAL NOT NULL,
    "uuid" UUID NOT NULL,
    "username" TEXT NOT NULL,
    "name" TEXT NOT NULL DEFAULT '',
    "email" TEXT NOT NULL DEFAULT '',
    "is_active" BOOLEAN NOT NULL DEFAULT true,
    "last_login" TIMESTAMPTZ(3),
    "attributes" JSONB NOT NULL DEFAULT '{}',
    "path" TEXT NOT NULL DEFAULT 'users',
    "type" "user_type" NOT NULL DEFAULT 'internal',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "users_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "groups" (
    "pk" UUID NOT NULL,
    "num_pk" SERIAL NOT NULL,
    "name" TEXT NOT NULL,
    "is_superuser" BOOLEAN NOT NULL DEFAULT false,
    "parent" UUID,
    "attributes" JSONB NOT NULL DEFAULT '{}',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "groups_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "group_ancestors" (
    "group_pk" UUID NOT NULL,
    "ancestor_pk" UUID NOT NULL,

    CONSTRAINT "group_ancestors_pkey" PRIMARY KEY ("group_pk","ancestor_pk")
);

-- CreateTable
CREATE TABLE "memberships" (
    "group_pk" UUID NOT NULL,
    "user_pk" INTEGER NOT NULL,

    CONSTRAINT "memberships_pkey" PRIMARY KEY ("group_pk","user_pk")
);

-- CreateTable
CREATE TABLE "row_counts" (
    "pk" BIGSERIAL NOT NULL,
    "table_name" TEXT NOT NULL,
    "rows" INTEGER NOT NULL,

    CONSTRAINT "row_counts_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "roles" (
    "pk" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "permissions" TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "roles_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "group_roles" (
    "group_pk" UUID NOT NULL,
    "role_pk" UUID NOT NULL,

    CONSTRAINT "group_roles_pkey" PRIMARY KEY ("group_pk","role_pk")
);

-- CreateTable
CREATE TABLE "tokens" (
    "pk" UUID NOT NULL,
    "identifier" TEXT NOT NULL,
    "intent" "token_intent" NOT NULL DEFAULT 'api',
    "user_pk" INTEGER NOT NULL,
    "description" TEXT NOT NULL DEFAULT '',
    "expires" TIMESTAMPTZ(3),
    "expiring" BOOLEAN NOT NULL DEFAULT true,
    "managed" TEXT,
    "key_hash" BYTEA NOT NULL,
    "sealed_key" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "tokens_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "totp_devices" (
    "pk" SERIAL NOT NULL,
    "uuid" UUID NOT NULL,
    "user_pk" INTEGER NOT NULL,
    "name" VARCHAR(64) NOT NULL,
    "confirmed" BOOLEAN NOT NULL DEFAULT true,
    "sealed_key" TEXT NOT NULL,
    "digits" INTEGER NOT NULL DEFAULT 6,
    "step" INTEGER NOT NULL DEFAULT 30,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "totp_devices_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "user_consents" (
    "pk" SERIAL NOT NULL,
    "user_pk" INTEGER NOT NULL,
    "application_pk" UUID NOT NULL,
    "permissions" TEXT NOT NULL DEFAULT '',
    "expires" TIMESTAMPTZ(3),
    "expiring" BOOLEAN NOT NULL DEFAULT true,

    CONSTRAINT "user_consents_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "applications" (
    "pk" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "slug" VARCHAR(50) NOT NULL,
    "provider_pk" INTEGER,
    "open_in_new_tab" BOOLEAN NOT NULL DEFAULT false,
    "meta_launch_url" TEXT NOT NULL DEFAULT '',
    "meta_description" TEXT NOT NULL DEFAULT '',
    "meta_publisher" TEXT NOT NULL DEFAULT '',
    "policy_engine_mode" "policy_engine_mode" NOT NULL DEFAULT 'any',
    "group_name" TEXT NOT NULL DEFAULT '',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "applications_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "backchannel_providers" (
    "application_pk" UUID NOT NULL,
    "provider_pk" INTEGER NOT NULL,

    CONSTRAINT "backchannel_providers_pkey" PRIMARY KEY ("application_pk","provider_pk")
);

-- CreateTable
CREATE TABLE "providers" (
    "pk" SERIAL NOT NULL,
    "uuid" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "authentication_flow" UUID,
    "authorization_flow" UUID,
    "invalidation_flow" UUID,
    "oauth2_client_id" VARCHAR(255),
    "settings" JSONB NOT NULL DEFAULT '{}',
    "secrets" JSONB NOT NULL DEFAULT '{}',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "providers_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "provider_references" (
    "provider_pk" INTEGER NOT NULL,
    "member" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "property_mapping_pk" UUID,
    "certificate_key_pair_pk" UUID,
    "group_pk" UUID,

    CONSTRAINT "provider_references_pkey" PRIMARY KEY ("provider_pk","member","position")
);

-- CreateTable
CREATE TABLE "flows" (
    "pk" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "slug" VARCHAR(50) NOT NULL,
    "title" TEXT NOT NULL DEFAULT '',
    "designation" "flow_designation" NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "flows_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "property_mappings" (
    "pk" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "expression" TEXT NOT NULL DEFAULT '',
    "managed" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "property_mappings_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "certificate_key_pairs" (
    "pk" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "certificate_data" TEXT NOT NULL,
    "sealed_key" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "certificate_key_pairs_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "runs" (
    "id" UUID NOT NULL,
    "state" "run_state" NOT NULL DEFAULT 'queued',
    "title" TEXT NOT NULL,
    "submitter_pk" INTEGER,
    "request_id" TEXT NOT NULL,
    "blueprint" TEXT NOT NULL,
    "options" JSONB NOT NULL DEFAULT '{}',
    "rings" INTEGER NOT NULL DEFAULT 1,
    "rung_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "started_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),
    "applied" BOOLEAN,
    "reason" TEXT,
    "logs" TEXT[],
    "generated" TEXT,
    "generated_until" TIMESTAMPTZ(3),

    CONSTRAINT "runs_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "audit_rows" (
    "pk" BIGSERIAL NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "actor_pk" INTEGER,
    "actor_name" TEXT NOT NULL,
    "real_pk" INTEGER,
    "real_name" TEXT,
    "action" TEXT NOT NULL,
    "changes" JSONB NOT NULL,
    "request_id" TEXT,
    "run_id" UUID,

    CONSTRAINT "audit_rows_pkey" PRIMARY KEY ("pk")
);

-- CreateTable
CREATE TABLE "queue_heartbeats" (
    "queue" TEXT NOT NULL,
    "consumed_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "queue_heartbeats_pkey" PRIMARY KEY ("queue")
);

-- CreateIndex
CREATE UNIQUE INDEX "installation_id_key" ON "installation"("id");

-- CreateIndex
CREATE UNIQUE INDEX "users_uuid_key" ON "users"("uuid");

-- CreateIndex
CREATE UNIQUE INDEX "users_username_key" ON "users"("username");

-- CreateIndex
CREATE INDEX "users_name_pk_idx" ON "users"("name", "pk");

-- CreateIndex
CREATE INDEX "users_email_pk_idx" ON "users"("email", "pk");

-- CreateIndex
CREATE INDEX "users_path_pk_idx" ON "users"("path", "pk");

-- CreateIndex
CREATE INDEX "users_type_pk_idx" ON "users"("type", "pk");

-- CreateIndex
CREATE INDEX "users_is_active_pk_idx" ON "users"("is_active", "pk");

-- CreateIndex
CREATE INDEX "users_last_login_pk_idx" ON "users"("last_login", "pk");

-- CreateIndex
CREATE UNIQUE INDEX "groups_num_pk_key" ON "groups"("num_pk");

-- CreateIndex
CREATE UNIQUE INDEX "groups_name_key" ON "groups"("name");

-- CreateIndex
CREATE INDEX "groups_parent_idx" ON "groups"("parent");

-- CreateIndex
CREATE INDEX "groups_is_superuser_pk_idx" ON "groups"("is_superuser", "pk");

-- CreateIndex
CREATE INDEX "group_ancestors_ancestor_pk_group_pk_idx" ON "group_ancestors"("ancestor_pk", "group_pk");

-- CreateIndex
CREATE INDEX "memberships_user_pk_group_pk_idx" ON "memberships"("user_pk", "group_pk");

-- CreateIndex
CREATE INDEX "row_counts_table_name_rows_idx" ON "row_counts"("table_name", "rows");

-- CreateIndex
CREATE UNIQUE INDEX "roles_name_key" ON "roles"("name");

-- CreateIndex
CREATE INDEX "group_roles_role_pk_idx" ON "group_roles"("role_pk");

-- CreateIndex
CREATE UNIQUE INDEX "tokens_identifier_key" ON "tokens"("identifier");

-- CreateIndex
CREATE UNIQUE INDEX "tokens_managed_key" ON "tokens"("managed");

-- CreateIndex
CREATE UNIQUE INDEX "tokens_key_hash_key" ON "tokens"("key_hash");

-- CreateIndex
CREATE INDEX "tokens_user_pk_idx" ON "tokens"("user_pk");

-- CreateIndex
CREATE UNIQUE INDEX "totp_devices_uuid_key" ON "totp_devices"("uuid");

-- CreateIndex
CREATE INDEX "totp_devices_user_pk_idx" ON "totp_devices"("user_pk");

-- CreateIndex
CREATE INDEX "totp_devices_name_pk_idx" ON "totp_devices"("name", "pk");

-- CreateIndex
CREATE INDEX "user_consents_application_pk_expires_pk_idx" ON "user_consents"("application_pk", "expires", "pk");

-- CreateIndex
CREATE INDEX "user_consents_expires_pk_idx" ON "user_consents"("expires", "pk");

-- CreateIndex
CREATE UNIQUE INDEX "user_consents_user_pk_application_pk_permissions_key" ON "user_consents"("user_pk", "application_pk", "permissions");

-- CreateIndex
CREATE UNIQUE INDEX "applications_slug_key" ON "applications"("slug");

-- CreateIndex
CREATE UNIQUE INDEX "applications_provider_pk_key" ON "applications"("provider_pk");

-- CreateIndex
CREATE INDEX "applications_name_pk_idx" ON "applications"("name", "pk");

-- CreateIndex
CREATE UNIQUE INDEX "backchannel_providers_provider_pk_key" ON "backchannel_providers"("provider_pk");

-- CreateIndex
CREATE UNIQUE INDEX "providers_uuid_key" ON "providers"("uuid");

-- CreateIndex
CREATE UNIQUE INDEX "providers_name_key" ON "providers"("name");

-- CreateIndex
CREATE UNIQUE INDEX "providers_oauth2_client_id_key" ON "providers"("oauth2_client_id");

-- CreateIndex
CREATE UNIQUE INDEX "flows_slug_key" ON "flows"("slug");

-- CreateIndex
CREATE UNIQUE INDEX "property_mappings_managed_key" ON "property_mappings"("managed");

-- CreateIndex
CREATE INDEX "property_mappings_name_idx" ON "property_mappings"("name");

-- CreateIndex
CREATE UNIQUE INDEX "certificate_key_pairs_name_key" ON "certificate_key_pairs"("name");

-- CreateIndex
CREATE INDEX "runs_submitter_pk_created_at_idx" ON "runs"("submitter_pk", "created_at");

-- CreateIndex
CREATE INDEX "audit_rows_run_id_idx" ON "audit_rows"("run_id");

-- CreateIndex
CREATE INDEX "audit_rows_actor_pk_at_idx" ON "audit_rows"("actor_pk", "at");

-- AddForeignKey
ALTER TABLE "groups" ADD CONSTRAINT "groups_parent_fkey" FOREIGN KEY ("parent") REFERENCES "groups"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "group_ancestors" ADD CONSTRAINT "group_ancestors_group_pk_fkey" FOREIGN KEY ("group_pk") REFERENCES "groups"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "group_ancestors" ADD CONSTRAINT "group_ancestors_ancestor_pk_fkey" FOREIGN KEY ("ancestor_pk") REFERENCES "groups"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "memberships" ADD CONSTRAINT "memberships_group_pk_fkey" FOREIGN KEY ("group_pk") REFERENCES "groups"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "memberships" ADD CONSTRAINT "memberships_user_pk_fkey" FOREIGN KEY ("user_pk") REFERENCES "users"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "group_roles" ADD CONSTRAINT "group_roles_group_pk_fkey" FOREIGN KEY ("group_pk") REFERENCES "groups"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "group_roles" ADD CONSTRAINT "group_roles_role_pk_fkey" FOREIGN KEY ("role_pk") REFERENCES "roles"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "tokens" ADD CONSTRAINT "tokens_user_pk_fkey" FOREIGN KEY ("user_pk") REFERENCES "users"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "totp_devices" ADD CONSTRAINT "totp_devices_user_pk_fkey" FOREIGN KEY ("user_pk") REFERENCES "users"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "user_consents" ADD CONSTRAINT "user_consents_user_pk_fkey" FOREIGN KEY ("user_pk") REFERENCES "users"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "user_consents" ADD CONSTRAINT "user_consents_application_pk_fkey" FOREIGN KEY ("application_pk") REFERENCES "applications"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "applications" ADD CONSTRAINT "applications_provider_pk_fkey" FOREIGN KEY ("provider_pk") REFERENCES "providers"("pk") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backchannel_providers" ADD CONSTRAINT "backchannel_providers_application_pk_fkey" FOREIGN KEY ("application_pk") REFERENCES "applications"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backchannel_providers" ADD CONSTRAINT "backchannel_providers_provider_pk_fkey" FOREIGN KEY ("provider_pk") REFERENCES "providers"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "providers" ADD CONSTRAINT "providers_authentication_flow_fkey" FOREIGN KEY ("authentication_flow") REFERENCES "flows"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "providers" ADD CONSTRAINT "providers_authorization_flow_fkey" FOREIGN KEY ("authorization_flow") REFERENCES "flows"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "providers" ADD CONSTRAINT "providers_invalidation_flow_fkey" FOREIGN KEY ("invalidation_flow") REFERENCES "flows"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_provider_pk_fkey" FOREIGN KEY ("provider_pk") REFERENCES "providers"("pk") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_property_mapping_pk_fkey" FOREIGN KEY ("property_mapping_pk") REFERENCES "property_mappings"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_certificate_key_pair_pk_fkey" FOREIGN KEY ("certificate_key_pair_pk") REFERENCES "certificate_key_pairs"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_group_pk_fkey" FOREIGN KEY ("group_pk") REFERENCES "groups"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_submitter_pk_fkey" FOREIGN KEY ("submitter_pk") REFERENCES "users"("pk") ON DELETE SET NULL ON UPDATE CASCADE;

-- What the schema file cannot say.

ALTER TABLE "installation" ADD CONSTRAINT "installation_is_one_row" CHECK ("singleton");
ALTER TABLE "groups" ADD CONSTRAINT "groups_is_not_its_own_parent" CHECK ("parent" <> "pk");
ALTER TABLE "tokens" ADD CONSTRAINT "tokens_expire_or_do_not" CHECK ("expiring" = ("expires" IS NOT NULL));
ALTER TABLE "totp_devices" ADD CONSTRAINT "totp_devices_digits" CHECK ("digits" IN (6, 8));
ALTER TABLE "totp_devices" ADD CONSTRAINT "totp_devices_step" CHECK ("step" > 0);
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_names_one_row"
  CHECK (num_nonnulls("property_mapping_pk", "certificate_key_pair_pk", "group_pk") = 1);
-- PostgreSQL reads a check anew for each statement, so this one is short: it stands in the way of every apply.
ALTER TABLE "runs" ADD CONSTRAINT "runs_are_queued_or_finished" CHECK (("state" = 'queued') = ("finished_at" IS NULL));

-- Groups know all their ancestors (docs/adr/0011-groups-know-their-ancestors.md). Whoever moves a group waits for others
-- who do: two that each see the tree before the other's move could close a circle.
CREATE FUNCTION "keep_group_ancestors"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND OLD."parent" IS NOT DISTINCT FROM NEW."parent" THEN
    RETURN NULL;
  END IF;
  IF TG_OP = 'UPDATE' OR NEW."parent" IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock('"groups"'::regclass::oid::bigint);
  END IF;
  IF TG_OP = 'INSERT' THEN
    INSERT INTO "group_ancestors" ("group_pk", "ancestor_pk")
      SELECT NEW."pk", NEW."pk"
      UNION ALL SELECT NEW."pk", a."ancestor_pk" FROM "group_ancestors" a WHERE a."group_pk" = NEW."parent";
    RETURN NULL;
  END IF;
  IF EXISTS (SELECT FROM "group_ancestors" a WHERE a."group_pk" = NEW."parent" AND a."ancestor_pk" = NEW."pk") THEN
    RAISE EXCEPTION 'group % would be above itself', NEW."pk"
      USING ERRCODE = 'check_violation', TABLE = 'groups', CONSTRAINT = 'groups_have_no_cycle';
  END IF;
  DELETE FROM "group_ancestors" a
    USING "group_ancestors" below, "group_ancestors" above
    WHERE below."ancestor_pk" = NEW."pk" AND above."group_pk" = NEW."pk" AND above."ancestor_pk" <> NEW."pk"
      AND a."group_pk" = below."group_pk" AND a."ancestor_pk" = above."ancestor_pk";
  INSERT INTO "group_ancestors" ("group_pk", "ancestor_pk")
    SELECT below."group_pk", above."ancestor_pk" FROM "group_ancestors" below, "group_ancestors" above
    WHERE below."ancestor_pk" = NEW."pk" AND above."group_pk" = NEW."parent";
  RETURN NULL;
END $$;
CREATE TRIGGER "groups_know_their_ancestors" AFTER INSERT OR UPDATE OF "parent" ON "groups"
  FOR EACH ROW EXECUTE FUNCTION "keep_group_ancestors"();

-- The reconciler asks for these every second; nearly all rows are finished.
CREATE INDEX "runs_queued" ON "runs" ("rung_at") WHERE "state" = 'queued';
CREATE INDEX "runs_with_generated" ON "runs" ("generated_until") WHERE "generated" IS NOT NULL;

-- Keys that nobody has viewed yet: workers look for old ones every second, and nearly all tokens have none.
CREATE INDEX "tokens_with_sealed_key" ON "tokens" ("created_at") WHERE "sealed_key" IS NOT NULL;

-- How many rows a list has, exactly, without counting them (docs/adr/0012-lists-know-their-size.md).
CREATE FUNCTION "keep_row_count"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    -- Whoever adds rows up has a sum that is not seen from here: he is waited for, and kept from beginning.
    PERFORM pg_advisory_xact_lock('"row_counts"'::regclass::oid::bigint);
    DELETE FROM "row_counts" WHERE "table_name" = TG_TABLE_NAME;
  ELSIF TG_OP = 'INSERT' THEN
    INSERT INTO "row_counts" ("table_name", "rows") SELECT TG_TABLE_NAME, count(*) FROM "touched" HAVING count(*) > 0;
  ELSE
    INSERT INTO "row_counts" ("table_name", "rows") SELECT TG_TABLE_NAME, -count(*) FROM "touched" HAVING count(*) > 0;
  END IF;
  RETURN NULL;
END $$;
DO $$
DECLARE
  listed text;
BEGIN
  FOREACH listed IN ARRAY ARRAY['users', 'groups', 'totp_devices', 'user_consents'] LOOP
    EXECUTE format('CREATE TRIGGER %I AFTER INSERT ON %I REFERENCING NEW TABLE AS "touched" FOR EACH STATEMENT EXECUTE FUNCTION "keep_row_count"()', listed || '_count_added', listed);
    EXECUTE format('CREATE TRIGGER %I AFTER DELETE ON %I REFERENCING OLD TABLE AS "touched" FOR EACH STATEMENT EXECUTE FUNCTION "keep_row_count"()', listed || '_count_removed', listed);
    EXECUTE format('CREATE TRIGGER %I AFTER TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION "keep_row_count"()', listed || '_count_emptied', listed);
  END LOOP;
END $$;

-- `search`: every term is in some field, in any case. Terms hold no white space, so none spans two fields of a line.
CREATE INDEX "users_search" ON "users" USING gin ((lower("username" || ' ' || "name" || ' ' || "email" || ' ' || "uuid"::text)) gin_trgm_ops);
CREATE INDEX "users_username_search" ON "users" USING gin ((lower("username")) gin_trgm_ops);
CREATE INDEX "groups_search" ON "groups" USING gin ((lower("name")) gin_trgm_ops);
CREATE INDEX "totp_devices_search" ON "totp_devices" USING gin ((lower("name")) gin_trgm_ops);

-- `attributes`: nested containment.
CREATE INDEX "users_attributes" ON "users" USING gin ("attributes" jsonb_path_ops);
CREATE INDEX "groups_attributes" ON "groups" USING gin ("attributes" jsonb_path_ops);

-- `path_startswith`, whatever the database's collation.
CREATE INDEX "users_path_prefix" ON "users" ("path" text_pattern_ops);

-- What a row may be referred to by: each such row names one of several, so only that one's index has it.
CREATE INDEX "provider_references_property_mapping" ON "provider_references" ("property_mapping_pk") WHERE "property_mapping_pk" IS NOT NULL;
CREATE INDEX "provider_references_certificate_key_pair" ON "provider_references" ("certificate_key_pair_pk") WHERE "certificate_key_pair_pk" IS NOT NULL;
CREATE INDEX "provider_references_group" ON "provider_references" ("group_pk") WHERE "group_pk" IS NOT NULL;
CREATE INDEX "providers_authentication_flow" ON "providers" ("authentication_flow") WHERE "authentication_flow" IS NOT NULL;
CREATE INDEX "providers_authorization_flow" ON "providers" ("authorization_flow") WHERE "authorization_flow" IS NOT NULL;
CREATE INDEX "providers_invalidation_flow" ON "providers" ("invalidation_flow") WHERE "invalidation_flow" IS NOT NULL;

-- A sealed document does not compress, and is read whenever its row is: it stays in the row while it fits a page.
ALTER TABLE "runs" ALTER COLUMN "blueprint" SET STORAGE EXTERNAL;
ALTER TABLE "runs" SET (toast_tuple_target = 8160);
