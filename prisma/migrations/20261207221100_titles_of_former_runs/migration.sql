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
    INSERT INTO "run_titles" ("title", "used_at") SELECT "title", max("created_at") FROM "runs"
      WHERE "id" > done AND "id" <= last GROUP BY "title" ORDER BY "title"
      ON CONFLICT ("title") DO UPDATE SET "used_at" = greatest("run_titles"."used_at", excluded."used_at");
    COMMIT;
    done := last;
  END LOOP;
END $$;
