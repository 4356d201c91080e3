-- Outside of a transaction: in portions, by key. Repeated, it finds nothing.
DO $$
DECLARE
  done bigint := 0;
  last bigint;
BEGIN
  LOOP
    SELECT max("audit_pk") INTO last FROM (
      SELECT "audit_pk" FROM "run_objects" WHERE "audit_pk" > done ORDER BY "audit_pk" LIMIT 1000) portion;
    EXIT WHEN last IS NULL;
    UPDATE "audit_rows" a SET "changes" = found.changes, "objects" = found.objects FROM (
      SELECT r."pk", jsonb_agg(CASE WHEN o."audit_pk" IS NULL THEN c.value ELSE c.value || jsonb_build_object('object',
            jsonb_build_object('name', o."name", 'was', o."was", 'owner', o."owner", 'change', o."change")
            || CASE WHEN o."change" IS NULL THEN jsonb_build_object('fields', o."fields") ELSE '{}' END) END ORDER BY c.position) AS changes,
        array_agg(DISTINCT o."model" || ' ' || o."key") FILTER (WHERE o."audit_pk" IS NOT NULL)
          || array_agg(DISTINCT o."model" || '=' || o."name") FILTER (WHERE o."audit_pk" IS NOT NULL)
          || array_agg(DISTINCT o."model" || '=' || o."was") FILTER (WHERE o."was" IS NOT NULL) AS objects
      FROM "audit_rows" r CROSS JOIN LATERAL jsonb_array_elements(r."changes") WITH ORDINALITY c(value, position)
        LEFT JOIN "run_objects" o ON o."audit_pk" = r."pk" AND o."position" = c.position - 1
      WHERE r."pk" > done AND r."pk" <= last AND r."objects" IS NULL
      GROUP BY r."pk"
    ) found WHERE a."pk" = found."pk" AND found.objects IS NOT NULL;
    COMMIT;
    done := last;
  END LOOP;
END $$;
