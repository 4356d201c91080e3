-- AlterTable
ALTER TABLE "installation" ADD COLUMN     "compared_at" TIMESTAMPTZ(3);

-- CreateTable
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
