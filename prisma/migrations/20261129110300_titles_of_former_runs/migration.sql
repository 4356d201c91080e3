-- Outside of a transaction: in portions, by key. Repeated, it adds what is missing.
DO $$
DECLARE
  done uuid := '00000000-0000-0000-0000-000000000000';
  last uuid;
BEGIN
  LOOP
    SELECT "id" INTO last FROM (SELECT "id" FROM "runs" WHERE "id" > done ORDER BY "id" LIMIT 5000) portion
      ORDER BY "id" DESC LIMIT 1;
    EXIT WHEN last IS NULL;
    WITH used AS (
      SELECT "title", max("created_at") AS "at" FROM "runs" WHERE "id" > done AND "id" <= last GROUP BY "title"
    ), known AS (
      UPDATE "run_titles" t SET "used_at" = greatest(t."used_at", used."at") FROM used WHERE t."title" = used."title"
      RETURNING t."title"
    )
    INSERT INTO "run_titles" ("title", "used_at") SELECT "title", "at" FROM used
      WHERE "title" NOT IN (SELECT "title" FROM known) ORDER BY "title";
    COMMIT;
    done := last;
  END LOOP;
END $$;
