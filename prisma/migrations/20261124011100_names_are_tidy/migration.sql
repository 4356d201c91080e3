-- Outside of a transaction: in portions, by key.
--
-- Names are stored without characters that are not shown, without white space around them, and composed (NFC): a document
-- that names an older row as before still finds it. A name that another row has then stays as it is.
DO $$
DECLARE
  hidden constant text := '[\x01-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]';
  named record;
  untidy record;
  done text;
  last text;
BEGIN
  IF current_setting('server_encoding') <> 'UTF8' THEN RETURN; END IF;
  FOR named IN SELECT * FROM (VALUES
    ('users', 'integer', 'username', true), ('groups', 'uuid', 'name', true), ('roles', 'uuid', 'name', true),
    ('providers', 'integer', 'name', true), ('certificate_key_pairs', 'uuid', 'name', true),
    ('users', 'integer', 'name', false), ('applications', 'uuid', 'name', false), ('flows', 'uuid', 'name', false),
    ('property_mappings', 'uuid', 'name', false), ('totp_devices', 'integer', 'name', false)
  ) AS n(tbl, key, col, is_unique) LOOP
    done := NULL;
    LOOP
      EXECUTE format($sql$
        SELECT pk::text FROM (SELECT pk FROM %1$I WHERE $1 IS NULL OR pk > $1::%2$s ORDER BY pk LIMIT 5000) portion
        ORDER BY portion.pk DESC LIMIT 1
      $sql$, named.tbl, named.key) INTO last USING done;
      EXIT WHEN last IS NULL;
      FOR untidy IN EXECUTE format($sql$
        SELECT pk::text AS pk, old, new FROM (
          SELECT pk, %3$I AS old,
            normalize(regexp_replace(regexp_replace(%3$I, %4$L, '', 'g'), '^\s+|\s+$', '', 'g'), NFC) AS new
          FROM %1$I WHERE ($1 IS NULL OR pk > $1::%2$s) AND pk <= $2::%2$s AND (%3$I ~ %5$L OR %3$I IS NOT NFC NORMALIZED)
        ) t WHERE new <> '' AND new <> old AND char_length(new) <= char_length(old) ORDER BY t.pk
      $sql$, named.tbl, named.key, named.col, hidden, hidden || '|^\s|\s$') USING done, last LOOP
        BEGIN
          EXECUTE format($sql$
            UPDATE %1$I SET %3$I = $1 WHERE pk = $2::%2$s AND %3$I = $3
              AND (NOT %4$L::boolean OR NOT EXISTS (SELECT FROM %1$I other WHERE other.%3$I = $1))
          $sql$, named.tbl, named.key, named.col, named.is_unique) USING untidy.new, untidy.pk, untidy.old;
        EXCEPTION WHEN unique_violation THEN
          -- Another session took the name just now.
        END;
      END LOOP;
      COMMIT;
      done := last;
    END LOOP;
  END LOOP;
END $$;
