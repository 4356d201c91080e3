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
