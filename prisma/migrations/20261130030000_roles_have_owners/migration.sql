-- The owners for whose rows the permissions of a role hold; none: all. `rights` is what the role gives: permissions for
-- applications and providers are bound to each owner. `rightsOf` in src/permissions.ts says the same.
CREATE FUNCTION "role_rights"(permissions TEXT[], owners TEXT[]) RETURNS TEXT[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN coalesce(cardinality(owners), 0) = 0 THEN permissions ELSE ARRAY(
    SELECT p FROM unnest(permissions) p WHERE p !~ '^(view|add|change|delete)_(application|.*provider)$'
    UNION ALL SELECT p || '@' || o FROM unnest(permissions) p, unnest(owners) o
      WHERE p ~ '^(view|add|change|delete)_(application|.*provider)$') END
$$;
ALTER TABLE "roles" ADD COLUMN "owners" TEXT[] DEFAULT ARRAY[]::TEXT[];
ALTER TABLE "roles" ADD COLUMN "rights" TEXT[] GENERATED ALWAYS AS ("role_rights"("permissions", "owners")) STORED;
