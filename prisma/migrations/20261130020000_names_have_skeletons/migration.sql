-- What a name looks like: `src/models/skeleton.ts` makes it. A worker fills it in where it is missing, in portions.
ALTER TABLE "users" ADD COLUMN "skeleton" TEXT;
ALTER TABLE "groups" ADD COLUMN "skeleton" TEXT;
ALTER TABLE "roles" ADD COLUMN "skeleton" TEXT;
CREATE INDEX "roles_skeleton" ON "roles" ("skeleton");

-- A version before this one renames rows, too: then a worker fills it in again. It does so, too, for a row whose new name
-- looks like its old one: from here, that is the same.
CREATE FUNCTION forget_skeleton() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW."skeleton" := NULL;
  RETURN NEW;
END $$;
CREATE TRIGGER "users_skeleton" BEFORE UPDATE OF "username" ON "users" FOR EACH ROW
  WHEN (OLD."username" <> NEW."username" AND OLD."skeleton" IS NOT DISTINCT FROM NEW."skeleton"
    AND compared_name(OLD."username") <> compared_name(NEW."username")) EXECUTE FUNCTION forget_skeleton();
CREATE TRIGGER "groups_skeleton" BEFORE UPDATE OF "name" ON "groups" FOR EACH ROW
  WHEN (OLD."name" <> NEW."name" AND OLD."skeleton" IS NOT DISTINCT FROM NEW."skeleton"
    AND compared_name(OLD."name") <> compared_name(NEW."name")) EXECUTE FUNCTION forget_skeleton();
CREATE TRIGGER "roles_skeleton" BEFORE UPDATE OF "name" ON "roles" FOR EACH ROW
  WHEN (OLD."name" <> NEW."name" AND OLD."skeleton" IS NOT DISTINCT FROM NEW."skeleton"
    AND compared_name(OLD."name") <> compared_name(NEW."name")) EXECUTE FUNCTION forget_skeleton();
