-- What an object was like when its change was recorded. Null for what an earlier version wrote.
ALTER TABLE "run_objects" ADD COLUMN "digest" TEXT;

ALTER TABLE "installation" ADD COLUMN "outside_checked_at" TIMESTAMPTZ(3);

-- What was changed past the service, as of the last look of a worker.
CREATE TABLE "outside_changes" (
    "model" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "is_deleted" BOOLEAN NOT NULL,
    "found_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "outside_changes_pkey" PRIMARY KEY ("model","key")
);

-- All columns but the time of creation. Replaced secrets are left out, because a worker deletes them when their overlap ends.
CREATE FUNCTION object_state(a applications) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT to_jsonb(a) - 'created_at' || jsonb_build_object('backchannel_providers',
    (SELECT jsonb_agg(b.provider_pk ORDER BY b.provider_pk) FROM backchannel_providers b WHERE b.application_pk = a.pk))
$$;
CREATE FUNCTION object_state(p providers) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT to_jsonb(p) - 'created_at' || jsonb_build_object(
    'settings', (SELECT jsonb_object_agg(k, v) FROM jsonb_each(p.settings) AS s(k, v) WHERE k NOT LIKE 'previous\_%'),
    'secrets', (SELECT jsonb_object_agg(k, v) FROM jsonb_each(p.secrets) AS s(k, v) WHERE k NOT LIKE 'previous\_%'))
$$;

-- Two digests can be compared when their first eight characters are equal: the key and the columns are the same.
CREATE FUNCTION object_digest(key bytea, state jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT left(md5(encode(key, 'hex') || (SELECT string_agg(c, ',' ORDER BY c) FROM jsonb_object_keys(state) AS c)), 8)
    || left(encode(sha256(key || convert_to(state::text, 'UTF8')), 'base64'), 22)
$$;
