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

-- The id of the key that made the checksum in a token's secret. null: none did, so it is looked for among the others.
ALTER TABLE "tokens" ADD COLUMN "checksum_key" TEXT;

-- The scope by which clients ask for a mapping. Those that are shipped get theirs, as the bootstrap blueprint has it.
ALTER TABLE "property_mappings" ADD COLUMN "scope_name" TEXT NOT NULL DEFAULT '';
UPDATE "property_mappings" SET "scope_name" = substring("managed" FROM 'scope-(.*)$')
  WHERE "kind" = 'oauth2' AND "managed" LIKE 'gatewright/oauth2/scope-%';

-- Slugs are as long as names; the models say how long.
ALTER TABLE "flows" ALTER COLUMN "slug" SET DATA TYPE TEXT;
ALTER TABLE "applications" ALTER COLUMN "slug" SET DATA TYPE TEXT;

-- States between 0.2.0 and 0.3.0 compared names by what they look like. No release has these columns.
DO $$ BEGIN
  IF to_regprocedure('forget_skeleton()') IS NOT NULL THEN
    DROP TRIGGER "users_skeleton" ON "users";
    DROP TRIGGER "groups_skeleton" ON "groups";
    DROP TRIGGER "roles_skeleton" ON "roles";
    DROP FUNCTION forget_skeleton();
    ALTER TABLE "users" DROP COLUMN "skeleton";
    ALTER TABLE "groups" DROP COLUMN "skeleton";
    ALTER TABLE "roles" DROP COLUMN "skeleton";
  END IF;
END $$;
