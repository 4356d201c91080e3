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
