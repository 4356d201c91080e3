-- Outside of a transaction: a portion of the rows at a time. Labels of owners are stored as names compare: `Team-A` and
-- `team-a` are one owner. Only labels with other characters than these differ. Again, it finds none.
DO $$
DECLARE
  found UUID[];
  last UUID := '00000000-0000-0000-0000-000000000000';
BEGIN
  UPDATE "applications" SET "owner" = compared_name("owner") WHERE "owner" ~ '[^a-z0-9._-]';
  UPDATE "providers" SET "owner" = compared_name("owner") WHERE "owner" ~ '[^a-z0-9._-]';
  UPDATE "run_objects" SET "owner" = compared_name("owner") WHERE "owner" ~ '[^a-z0-9._-]';
  UPDATE "roles" SET "owners" = ARRAY(SELECT DISTINCT compared_name(label) FROM unnest("owners") label)
    WHERE "owners"::text ~ '[^a-z0-9._,{}-]';
  COMMIT;
  LOOP
    SELECT array_agg(pk ORDER BY pk) INTO found FROM (
      SELECT pk FROM "tokens" WHERE pk > last AND "owners"::text ~ '[^a-z0-9._,{}-]' ORDER BY pk LIMIT 1000) portion;
    EXIT WHEN found IS NULL;
    UPDATE "tokens" SET "owners" = ARRAY(SELECT DISTINCT compared_name(label) FROM unnest("owners") label),
      "ceiling" = CASE WHEN "ceiling" IS NOT NULL THEN coalesce((SELECT jsonb_agg(DISTINCT CASE WHEN strpos(held, '@') = 0 THEN held
        ELSE split_part(held, '@', 1) || '@' || compared_name(substr(held, strpos(held, '@') + 1)) END)
        FROM jsonb_array_elements_text("ceiling") held), '[]') END
      WHERE pk = ANY (found);
    last := found[array_length(found, 1)];
    COMMIT;
  END LOOP;
  last := '00000000-0000-0000-0000-000000000000';
  LOOP
    SELECT array_agg(id ORDER BY id) INTO found FROM (
      SELECT id FROM "runs" WHERE id > last AND "options"->>'owner' ~ '[^a-z0-9._-]' ORDER BY id LIMIT 1000) portion;
    EXIT WHEN found IS NULL;
    UPDATE "runs" SET "options" = "options" || jsonb_build_object('owner', compared_name("options"->>'owner'))
      WHERE id = ANY (found);
    last := found[array_length(found, 1)];
    COMMIT;
  END LOOP;
END $$;
