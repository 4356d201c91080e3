-- Names are compared, and no longer by what they look like. No release before this one reads these columns.
DROP TRIGGER "users_skeleton" ON "users";
DROP TRIGGER "groups_skeleton" ON "groups";
DROP TRIGGER "roles_skeleton" ON "roles";
DROP FUNCTION forget_skeleton();
ALTER TABLE "users" DROP COLUMN "skeleton";
ALTER TABLE "groups" DROP COLUMN "skeleton";
ALTER TABLE "roles" DROP COLUMN "skeleton";
