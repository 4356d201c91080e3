-- Outside of a transaction: in portions, by key. Repeated, it finds nothing. Only states between 0.2.0 and 0.3.0 have shared results.
DO $$
DECLARE
  done uuid := '00000000-0000-0000-0000-000000000000';
  last uuid;
BEGIN
  IF NOT EXISTS (SELECT FROM "shared_results") THEN RETURN; END IF;
  LOOP
    SELECT "id" INTO last FROM (SELECT "id" FROM "runs" WHERE "id" > done ORDER BY "id" LIMIT 5000) portion
      ORDER BY "id" DESC LIMIT 1;
    EXIT WHEN last IS NULL;
    UPDATE "runs" r SET "logs" = s."logs", "changes" = s."changes", "shared_result" = NULL FROM "shared_results" s
      WHERE s."key" = r."shared_result" AND r."id" > done AND r."id" <= last;
    COMMIT;
    done := last;
  END LOOP;
END $$;
