-- What each document and request did to which object: an application is found with all that changed it. A row belongs to
-- its audit row, which says who did it, and is deleted with it.
CREATE TABLE "run_objects" (
    "audit_pk" BIGINT NOT NULL,
    "position" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "run_id" UUID,
    "model" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "was" TEXT,
    "owner" TEXT,
    "action" TEXT NOT NULL,
    "change" INTEGER,
    "fields" JSONB,

    CONSTRAINT "run_objects_pkey" PRIMARY KEY ("audit_pk", "position"),
    CONSTRAINT "run_objects_action" CHECK ("action" IN ('create', 'update', 'delete'))
);
CREATE INDEX "run_objects_model_key_audit_pk_idx" ON "run_objects"("model", "key", "audit_pk");
CREATE INDEX "run_objects_model_name_idx" ON "run_objects"("model", "name");
-- Renames are few.
CREATE INDEX "run_objects_renamed" ON "run_objects"("model", "was") WHERE "was" IS NOT NULL;

-- How far the audit rows of earlier versions have been carried over (src/runs/history-fill.ts).
ALTER TABLE "installation" ADD COLUMN "history_filled" BIGINT NOT NULL DEFAULT 0;
ALTER TABLE "installation" ADD COLUMN "history_fill_until" TIMESTAMPTZ(3) DEFAULT now() + interval '1 day';

CREATE OR REPLACE FUNCTION "delete_old_audit_rows"("days" integer, "portion" integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  deleted integer;
BEGIN
  IF "days" < 30 THEN
    RAISE EXCEPTION 'audit rows are kept for 30 days or more' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- In the order of their keys, which is that of their times: the table needs no index for this.
  WITH oldest AS (SELECT "pk", "at" FROM public."audit_rows" ORDER BY "pk" LIMIT "portion"),
  deleted AS (
    DELETE FROM public."audit_rows" USING oldest
    WHERE "audit_rows"."pk" = oldest."pk" AND oldest."at" < now() - make_interval(days => "days")
    RETURNING "audit_rows"."pk"
  ),
  objects AS (DELETE FROM public."run_objects" USING deleted WHERE "run_objects"."audit_pk" = deleted."pk")
  SELECT count(*) INTO deleted FROM deleted;
  RETURN deleted;
END $$;
