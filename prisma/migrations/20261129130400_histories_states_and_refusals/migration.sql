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
