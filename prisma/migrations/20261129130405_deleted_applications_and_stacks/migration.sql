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
