-- Runs can be listed: by kind, slug, submitter, request and time, the newest first. Later migrations fill the columns and
-- build the indexes. `kind` keeps its default: an API of version 0.1.0 that still runs does not write it.
ALTER TABLE "runs" RENAME COLUMN "rings" TO "attempts";
ALTER TABLE "runs" RENAME COLUMN "rung_at" TO "enqueued_at";
ALTER TABLE "runs" ADD COLUMN "kind" TEXT NOT NULL DEFAULT 'blueprint';
ALTER TABLE "runs" ADD COLUMN "slug" TEXT;

ALTER TABLE "provider_references" RENAME COLUMN "member" TO "field";

-- A setting of a provider kind may refer to any model that others refer to: a new kind needs no migration.
ALTER TABLE "provider_references" ADD COLUMN "flow_pk" UUID;
ALTER TABLE "provider_references" ADD COLUMN "role_pk" UUID;
ALTER TABLE "provider_references" ADD COLUMN "user_pk" INTEGER;
ALTER TABLE "provider_references" ADD COLUMN "application_pk" UUID;
ALTER TABLE "provider_references" ADD COLUMN "other_provider_pk" INTEGER;

-- AddForeignKey
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_flow_pk_fkey" FOREIGN KEY ("flow_pk") REFERENCES "flows"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_role_pk_fkey" FOREIGN KEY ("role_pk") REFERENCES "roles"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_user_pk_fkey" FOREIGN KEY ("user_pk") REFERENCES "users"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_application_pk_fkey" FOREIGN KEY ("application_pk") REFERENCES "applications"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_other_provider_pk_fkey" FOREIGN KEY ("other_provider_pk") REFERENCES "providers"("pk") ON DELETE RESTRICT ON UPDATE CASCADE;

ALTER TABLE "provider_references" DROP CONSTRAINT "provider_references_names_one_row";
ALTER TABLE "provider_references" ADD CONSTRAINT "provider_references_names_one_row"
  CHECK (num_nonnulls("property_mapping_pk", "certificate_key_pair_pk", "group_pk", "flow_pk", "role_pk", "user_pk", "application_pk", "other_provider_pk") = 1);
CREATE INDEX "provider_references_flow" ON "provider_references" ("flow_pk") WHERE "flow_pk" IS NOT NULL;
CREATE INDEX "provider_references_role" ON "provider_references" ("role_pk") WHERE "role_pk" IS NOT NULL;
CREATE INDEX "provider_references_user" ON "provider_references" ("user_pk") WHERE "user_pk" IS NOT NULL;
CREATE INDEX "provider_references_application" ON "provider_references" ("application_pk") WHERE "application_pk" IS NOT NULL;
CREATE INDEX "provider_references_other_provider" ON "provider_references" ("other_provider_pk") WHERE "other_provider_pk" IS NOT NULL;
