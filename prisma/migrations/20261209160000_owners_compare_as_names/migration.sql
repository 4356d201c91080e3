-- Labels of owners are stored as names compare: `Team-A` and `team-a` are one owner. Only labels with other characters than these differ.
UPDATE "applications" SET "owner" = compared_name("owner") WHERE "owner" ~ '[^a-z0-9._-]';
UPDATE "providers" SET "owner" = compared_name("owner") WHERE "owner" ~ '[^a-z0-9._-]';
UPDATE "run_objects" SET "owner" = compared_name("owner") WHERE "owner" ~ '[^a-z0-9._-]';
UPDATE "roles" SET "owners" = ARRAY(SELECT DISTINCT compared_name(label) FROM unnest("owners") label)
  WHERE "owners"::text ~ '[^a-z0-9._,{}-]';
