-- The login of API and worker may add audit rows, and neither change nor delete them (src/db/roles.ts). Retention deletes
-- old ones through this function, which has the rights of its owner and never deletes a row of the last 30 days.
CREATE FUNCTION "delete_old_audit_rows"("days" integer, "portion" integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  deleted integer;
BEGIN
  IF "days" < 30 THEN
    RAISE EXCEPTION 'audit rows are kept for 30 days or more' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- In the order of their keys, which is that of their times: the table needs no index for this.
  WITH oldest AS (SELECT "pk", "at" FROM public."audit_rows" ORDER BY "pk" LIMIT "portion")
  DELETE FROM public."audit_rows" USING oldest
  WHERE "audit_rows"."pk" = oldest."pk" AND oldest."at" < now() - make_interval(days => "days");
  GET DIAGNOSTICS deleted = ROW_COUNT;
  RETURN deleted;
END $$;
REVOKE ALL ON FUNCTION "delete_old_audit_rows"(integer, integer) FROM PUBLIC;
