-- AlterTable
ALTER TABLE "installation" ADD COLUMN "sealed_check" TEXT;

-- AlterTable
ALTER TABLE "runs" ADD COLUMN "document" BYTEA;
ALTER TABLE "runs" ALTER COLUMN "blueprint" DROP NOT NULL;

-- The copy of a document that runs share. No run has one yet, so that this reads the table once and sorts nothing.
CREATE INDEX "runs_with_document" ON "runs" ("document") WHERE "document" IS NOT NULL AND "blueprint" IS NOT NULL;

-- Unique names are unique in all cases of their letters. Rows that already differ in case alone stay: the service compares,
-- behind a lock of the name, and these indexes only find.
CREATE INDEX "users_username_folded" ON "users" (lower("username"));
CREATE INDEX "groups_name_folded" ON "groups" (lower("name"));
CREATE INDEX "roles_name_folded" ON "roles" (lower("name"));
CREATE INDEX "applications_slug_folded" ON "applications" (lower("slug"));
CREATE INDEX "providers_name_folded" ON "providers" (lower("name"));
CREATE INDEX "flows_slug_folded" ON "flows" (lower("slug"));
CREATE INDEX "certificate_key_pairs_name_folded" ON "certificate_key_pairs" (lower("name"));

-- Names are stored without characters that are not shown, without white space around them, and composed (NFC): a document
-- that names an older row as before still finds it. A name that another row has then stays as it is.
DO $$
DECLARE
  hidden constant text := '[\x01-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]';
  named record;
BEGIN
  IF current_setting('server_encoding') <> 'UTF8' THEN RETURN; END IF;
  FOR named IN SELECT * FROM (VALUES
    ('users', 'username', true), ('groups', 'name', true), ('roles', 'name', true), ('providers', 'name', true),
    ('certificate_key_pairs', 'name', true), ('users', 'name', false), ('applications', 'name', false),
    ('flows', 'name', false), ('property_mappings', 'name', false), ('totp_devices', 'name', false)
  ) AS n(tbl, col, is_unique) LOOP
    EXECUTE format($sql$
      UPDATE %1$I SET %2$I = tidied.new FROM (
        SELECT pk, new, row_number() OVER (PARTITION BY new ORDER BY pk) AS place FROM (
          SELECT pk, normalize(regexp_replace(regexp_replace(%2$I, %3$L, '', 'g'), '^\s+|\s+$', '', 'g'), NFC) AS new
          FROM %1$I WHERE %2$I ~ %4$L OR %2$I IS NOT NFC NORMALIZED
        ) t
      ) tidied
      WHERE %1$I.pk = tidied.pk AND tidied.new <> '' AND tidied.new <> %2$I
        AND char_length(tidied.new) <= char_length(%2$I)
        AND (NOT %5$L::boolean OR (tidied.place = 1 AND NOT EXISTS (SELECT FROM %1$I other WHERE other.%2$I = tidied.new)))
      $sql$, named.tbl, named.col, hidden, hidden || '|^\s|\s$', named.is_unique);
  END LOOP;
END $$;
