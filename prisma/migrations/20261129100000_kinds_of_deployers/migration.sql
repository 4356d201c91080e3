-- The provider kinds that the shipped role of deployers was given: a start adds those that came later.
ALTER TABLE "installation" ADD COLUMN "deployer_kinds" TEXT[] DEFAULT ARRAY[]::TEXT[];
-- Earlier versions gave it these.
UPDATE "installation" SET "deployer_kinds" =
  '{directory_sync_b,ldap,oauth2,proxy,rac,radius,saml,scim,workspace_sync_a}' WHERE "bootstrapped_at" IS NOT NULL;
