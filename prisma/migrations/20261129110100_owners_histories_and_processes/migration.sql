-- What each document and request did to which object: an application is found with all that changed it. A row belongs to
-- its audit row, which says who did it, and is deleted with it.
CREATE TABLE "run_objects" (
    "audit_pk" BIGINT NOT NULL,
    "position" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "run_id" UUID,
    "model" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "was" TEXT,
    "owner" TEXT,
    "action" TEXT NOT NULL,
    "change" INTEGER,
    "fields" JSONB,
    -- What the object was like when its change was recorded. Null for what an earlier version wrote.
    "digest" TEXT,

    CONSTRAINT "run_objects_pkey" PRIMARY KEY ("audit_pk", "position"),
    CONSTRAINT "run_objects_action" CHECK ("action" IN ('create', 'update', 'delete'))
);
CREATE INDEX "run_objects_model_key_audit_pk_idx" ON "run_objects"("model", "key", "audit_pk");
CREATE INDEX "run_objects_model_name_idx" ON "run_objects"("model", "name");
-- Renames are few.
CREATE INDEX "run_objects_renamed" ON "run_objects"("model", "was") WHERE "was" IS NOT NULL;

-- The keys are found first, so that no plan joins a whole table: a plan for any number of rows expects that LIMIT leaves a
-- tenth of it. And a younger row between old ones, as of a clock that was set back, does not end the work: it goes on
-- until a part of the table has no old row, or the portion is full.
CREATE OR REPLACE FUNCTION "delete_old_audit_rows"("days" integer, "portion" integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  "cutoff" timestamptz := now() - make_interval(days => "days");
  "after" bigint := 0;
  "old" bigint[];
  "deleted" integer := 0;
BEGIN
  IF "days" < 30 THEN
    RAISE EXCEPTION 'audit rows are kept for 30 days or more' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- In the order of their keys, which is that of their times: the table needs no index for this.
  FOR part IN 1..20 LOOP
    SELECT max("pk"), (array_agg("pk" ORDER BY "pk") FILTER (WHERE "at" < "cutoff"))[1:"portion" - "deleted"]
      INTO "after", "old"
      FROM (SELECT "pk", "at" FROM public."audit_rows" WHERE "pk" > "after" ORDER BY "pk" LIMIT 1000) first;
    EXIT WHEN "old" IS NULL;
    WITH gone AS (DELETE FROM public."audit_rows" WHERE "pk" = ANY ("old") RETURNING "pk"),
    objects AS (DELETE FROM public."run_objects" WHERE "audit_pk" = ANY (ARRAY(SELECT "pk" FROM gone)))
    SELECT "deleted" + count(*) INTO "deleted" FROM gone;
    EXIT WHEN "deleted" >= "portion";
  END LOOP;
  RETURN "deleted";
END $$;

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

-- Each worker process, with when it was last heard.
CREATE TABLE "workers" (
    "id" UUID NOT NULL,
    "host" VARCHAR(255) NOT NULL,
    "process_id" INTEGER NOT NULL,
    "version" VARCHAR(100) NOT NULL,
    "format" SMALLINT NOT NULL,
    "slots" INTEGER NOT NULL,
    "busy" INTEGER NOT NULL DEFAULT 0,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "taken_at" TIMESTAMPTZ(3),
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),

    CONSTRAINT "workers_pkey" PRIMARY KEY ("id")
);

-- Each process of the API, likewise.
CREATE TABLE "servers" (
    "id" UUID NOT NULL,
    "host" VARCHAR(255) NOT NULL,
    "process_id" INTEGER NOT NULL,
    "version" VARCHAR(100) NOT NULL,
    "format" SMALLINT NOT NULL,
    "slots" INTEGER NOT NULL,
    "busy" INTEGER NOT NULL DEFAULT 0,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "taken_at" TIMESTAMPTZ(3),
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),

    CONSTRAINT "servers_pkey" PRIMARY KEY ("id")
);

-- What all processes have counted of runs since the installation, for the metrics.
CREATE TABLE "metric_sums" (
    "series" VARCHAR(200) NOT NULL,
    "value" DOUBLE PRECISION NOT NULL,

    CONSTRAINT "metric_sums_pkey" PRIMARY KEY ("series")
);

-- The last submissions that were refused before they were recorded. It stays small: the oldest go.
CREATE TABLE "refusals" (
    "pk" BIGSERIAL NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "route" TEXT NOT NULL,
    "code" TEXT NOT NULL,
    "status" SMALLINT NOT NULL,
    "user_pk" INTEGER,
    "username" TEXT,
    "request_id" TEXT NOT NULL,
    "title" TEXT,
    "sentence" TEXT NOT NULL,

    CONSTRAINT "refusals_pkey" PRIMARY KEY ("pk")
);

-- What became of the submissions of each minute, hour and day, for plots of more than an hour. Maintenance folds runs into
-- it, and it outlives them (docs/adr/0068-plots-read-folded-runs.md).
CREATE TABLE "run_sums" (
    "step_s" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "series" VARCHAR(20) NOT NULL,
    "bucket" SMALLINT NOT NULL,
    "runs" INTEGER NOT NULL,

    CONSTRAINT "run_sums_pkey" PRIMARY KEY ("step_s", "at", "series", "bucket")
);

-- Until when runs are folded: one row.
CREATE TABLE "run_folds" (
    "singleton" BOOLEAN NOT NULL DEFAULT true,
    "until" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "run_folds_pkey" PRIMARY KEY ("singleton"),
    CONSTRAINT "run_folds_singleton" CHECK ("singleton")
);
INSERT INTO "run_folds" ("until")
    SELECT date_bin('1 minute', coalesce(min("created_at"), now()), 'epoch') FROM "runs";

-- What others wait for stands last, in the order in which they lock it.

-- The owners to which a token is bound, as it was created: its ceiling has what that leaves.
ALTER TABLE "tokens" ADD COLUMN "owners" TEXT[] DEFAULT ARRAY[]::TEXT[];

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

-- Why the queue is paused, as the operator says it.
ALTER TABLE "queue_pauses" ADD COLUMN "reason" VARCHAR(200);

-- How far the audit rows of earlier versions have been carried over (src/runs/history-fill.ts). When a worker looked for what
-- was changed past the service, and the oldest transaction that was not over then.
ALTER TABLE "installation" ADD COLUMN "history_filled" BIGINT NOT NULL DEFAULT 0,
ADD COLUMN "history_fill_until" TIMESTAMPTZ(3) DEFAULT now() + interval '1 day',
ADD COLUMN "outside_checked_at" TIMESTAMPTZ(3),
ADD COLUMN "outside_after" BIGINT;
