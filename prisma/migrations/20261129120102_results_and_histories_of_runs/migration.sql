-- Outside of a transaction: in portions, by key. Repeated, it finds what is missing. Only states between 0.2.0 and 0.3.0 have shared
-- results. Audit rows become histories of objects, as far as they have the data: the name is that of now, or of the
-- run; a single write has no values.
DO $$
DECLARE
  done_run uuid := '00000000-0000-0000-0000-000000000000';
  last_run uuid;
  done bigint := 0;
  last bigint;
BEGIN
  IF EXISTS (SELECT FROM "shared_results") THEN
    LOOP
      SELECT "id" INTO last_run FROM (SELECT "id" FROM "runs" WHERE "id" > done_run ORDER BY "id" LIMIT 5000) portion
        ORDER BY "id" DESC LIMIT 1;
      EXIT WHEN last_run IS NULL;
      UPDATE "runs" r SET "logs" = s."logs", "changes" = s."changes", "shared_result" = NULL FROM "shared_results" s
        WHERE s."key" = r."shared_result" AND r."id" > done_run AND r."id" <= last_run;
      COMMIT;
      done_run := last_run;
    END LOOP;
  END IF;
  LOOP
    SELECT max("pk") INTO last FROM (SELECT "pk" FROM "audit_rows" WHERE "pk" > done ORDER BY "pk" LIMIT 500) portion;
    EXIT WHEN last IS NULL;
    WITH changed AS (
      SELECT a."pk", a."at", a."run_id", c.position, c.value->>'model' AS model, c.value->>'key' AS key, c.value->>'action' AS action
      FROM "audit_rows" a, jsonb_array_elements(a."changes") WITH ORDINALITY c(value, position)
      WHERE a."pk" > done AND a."pk" <= last AND c.value->>'action' IN ('create', 'update', 'delete')
        AND NOT EXISTS (SELECT FROM "run_objects" o WHERE o."audit_pk" = a."pk")
    )
    INSERT INTO "run_objects" ("audit_pk", "position", "at", "run_id", "model", "key", "name", "action", "change")
    SELECT c."pk", c.position - 1, c."at", c."run_id", c.model, c.key, coalesce(CASE
        WHEN c.model = 'service_core.application' THEN (SELECT t."slug" FROM "applications" t WHERE t."pk" = c.key::uuid)
        WHEN c.model LIKE 'service\_providers\_%' THEN (SELECT t."name" FROM "providers" t WHERE t."pk" = c.key::integer)
        WHEN c.model = 'service_core.group' THEN (SELECT t."name" FROM "groups" t WHERE t."pk" = c.key::uuid)
        WHEN c.model = 'service_core.user' THEN (SELECT t."username" FROM "users" t WHERE t."pk" = c.key::integer)
        WHEN c.model = 'service_core.token' THEN (SELECT t."identifier" FROM "tokens" t WHERE t."pk" = c.key::uuid)
        WHEN c.model = 'service_rbac.role' THEN (SELECT t."name" FROM "roles" t WHERE t."pk" = c.key::uuid)
        WHEN c.model = 'service_flows.flow' THEN (SELECT t."slug" FROM "flows" t WHERE t."pk" = c.key::uuid)
        WHEN c.model = 'service_mappings.propertymapping' THEN (SELECT t."name" FROM "property_mappings" t WHERE t."pk" = c.key::uuid)
        WHEN c.model = 'service_crypto.certificatekeypair' THEN (SELECT t."name" FROM "certificate_key_pairs" t WHERE t."pk" = c.key::uuid)
        WHEN c.model = 'service_stages_totp.totpdevice' THEN (SELECT t."name" FROM "totp_devices" t WHERE t."pk" = c.key::integer)
      END, named.name, c.key), c.action, named.change
    FROM changed c LEFT JOIN LATERAL (
      SELECT written.change, (SELECT min(value) FROM jsonb_each_text(written.value->'key')) AS name FROM (
        SELECT x.value, x.at - 1 AS change, row_number() OVER (ORDER BY x.at) AS nth
        FROM "runs" r, jsonb_array_elements(r."changes") WITH ORDINALITY x(value, at)
        WHERE r."id" = c."run_id" AND x.value->>'action' <> 'unchanged'
      ) written WHERE written.nth = c.position AND written.value->>'model' = c.model
    ) named ON true
    ON CONFLICT DO NOTHING;
    COMMIT;
    done := last;
  END LOOP;
END $$;
