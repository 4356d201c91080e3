-- Outside of a transaction: in portions, by key, so that no run is locked for long. Repeated, it changes what is left.
-- A run that a worker has locked meanwhile is skipped, and so are those that an API of version 0.1.0 still records: they
-- are listed as `blueprint`, without a slug.
DO $$
DECLARE
  done uuid := '00000000-0000-0000-0000-000000000000';
  last uuid;
BEGIN
  LOOP
    SELECT "id" INTO last FROM (SELECT "id" FROM "runs" WHERE "id" > done ORDER BY "id" LIMIT 2000) portion
      ORDER BY "id" DESC LIMIT 1;
    EXIT WHEN last IS NULL;
    WITH due AS (
      SELECT "id", "kind" = 'blueprint' AND "title" LIKE 'apply % %' AND "title" NOT LIKE 'apply blueprint %' AS of_provider
      FROM "runs" WHERE "id" > done AND "id" <= last FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE "runs" SET
      "kind" = CASE WHEN of_provider THEN split_part("title", ' ', 2) ELSE "kind" END,
      "slug" = CASE WHEN of_provider THEN split_part("title", ' ', 3) ELSE "slug" END,
      "reason" = CASE "reason" WHEN 'not_applied' THEN 'cancelled' ELSE "reason" END
      FROM due WHERE "runs"."id" = due."id" AND (of_provider OR "reason" = 'not_applied');
    COMMIT;
    done := last;
  END LOOP;
END $$;
