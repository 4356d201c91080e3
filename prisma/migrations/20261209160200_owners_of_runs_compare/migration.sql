-- Outside of a transaction: a portion of the rows at a time. Again, it finds none.
DO $$
DECLARE
  found UUID[];
  last UUID := '00000000-0000-0000-0000-000000000000';
BEGIN
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
