-- Of the 100 tokens that a user may have: a job that makes a token each time reached them with those that had expired.
CREATE OR REPLACE FUNCTION "limit_tokens_of_users"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM "users" u WHERE u."pk" IN (SELECT "user_pk" FROM "added") ORDER BY u."pk" FOR NO KEY UPDATE;
  IF EXISTS (
    SELECT FROM (SELECT DISTINCT "user_pk" FROM "added") a
    WHERE (SELECT count(*) FROM "tokens" t
      WHERE t."user_pk" = a."user_pk" AND (t."expires" IS NULL OR t."expires" > now())) > 100
  ) THEN
    RAISE EXCEPTION 'a user would have more than 100 tokens'
      USING ERRCODE = 'check_violation', TABLE = 'tokens', CONSTRAINT = 'tokens_are_limited';
  END IF;
  RETURN NULL;
END $$;
