-- What the caller held who last wrote a group's settings. Of earlier ones it is not known: they reach users without rights.
ALTER TABLE "groups" ADD COLUMN "settings_by_superuser" BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE "groups" ADD COLUMN "settings_by_permissions" TEXT[] DEFAULT ARRAY[]::TEXT[];
