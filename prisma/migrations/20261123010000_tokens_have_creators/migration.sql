-- A token carries no more than its creator could grant (docs/adr/0031-tokens-carry-a-ceiling.md). Existing tokens keep
-- all rights of their users: who made them is in `audit_rows`, but not with which rights.
ALTER TABLE "tokens" ADD COLUMN "created_by" INTEGER;
ALTER TABLE "tokens" ADD COLUMN "ceiling" JSONB;

-- NOT VALID: no row has a value yet, so there is nothing to read the table for.
ALTER TABLE "tokens" ADD CONSTRAINT "tokens_created_by_fkey" FOREIGN KEY ("created_by") REFERENCES "users"("pk") ON DELETE SET NULL ON UPDATE CASCADE NOT VALID;

ALTER TABLE "tokens" ADD CONSTRAINT "tokens_ceiling_is_a_list" CHECK (jsonb_typeof("ceiling") = 'array') NOT VALID;

-- At most 100 tokens for each user. The service reports it as an error of a field; this is for two that are made at the
-- same time: the second waits for the first, by the row of their user, and then sees it.
CREATE FUNCTION "limit_tokens_of_users"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM "users" u WHERE u."pk" IN (SELECT "user_pk" FROM "added") ORDER BY u."pk" FOR NO KEY UPDATE;
  IF EXISTS (
    SELECT FROM (SELECT DISTINCT "user_pk" FROM "added") a
    WHERE (SELECT count(*) FROM "tokens" t WHERE t."user_pk" = a."user_pk") > 100
  ) THEN
    RAISE EXCEPTION 'a user would have more than 100 tokens'
      USING ERRCODE = 'check_violation', TABLE = 'tokens', CONSTRAINT = 'tokens_are_limited';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "tokens_are_limited" AFTER INSERT ON "tokens" REFERENCING NEW TABLE AS "added"
  FOR EACH STATEMENT EXECUTE FUNCTION "limit_tokens_of_users"();
