-- Outside of a transaction: writes go on while each index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "users_username_compared" ON "users" (compared_name("username"));

-- It holds the key, as the next one: pages far inside the list read no rows.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "users_by_username" ON "users" ("username") INCLUDE ("pk");

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "users_by_uuid" ON "users" ("uuid") INCLUDE ("pk");

CREATE INDEX CONCURRENTLY IF NOT EXISTS "groups_name_compared" ON "groups" (compared_name("name"));

-- Few groups have settings, and attributes may be long.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "groups_with_settings" ON "groups" ("pk") WHERE ("attributes" -> 'settings') IS NOT NULL;

-- What has no owner is not in it, nor in the next one.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "applications_by_owner" ON "applications" ("owner", "name", "pk") WHERE "owner" IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS "providers_by_owner" ON "providers" ("owner", "name", "pk") WHERE "owner" IS NOT NULL;

-- It holds the key: pages far inside the list read no rows.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "tokens_by_identifier" ON "tokens" ("identifier") INCLUDE ("pk");

CREATE INDEX CONCURRENTLY IF NOT EXISTS "tokens_description_pk_idx" ON "tokens" ("description", "pk");

CREATE INDEX CONCURRENTLY IF NOT EXISTS "tokens_intent_pk_idx" ON "tokens" ("intent", "pk");

CREATE INDEX CONCURRENTLY IF NOT EXISTS "tokens_expires_pk_idx" ON "tokens" ("expires", "pk");

CREATE INDEX CONCURRENTLY IF NOT EXISTS "user_consents_user_pk_expires_pk_idx"
  ON "user_consents" ("user_pk", "expires", "pk");

-- It is half as large as one in an order that nothing needs.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_request" ON "runs" USING HASH ("request_id");

-- Runs without a position are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_change" ON "runs" ("changed_in") WHERE "changed_in" IS NOT NULL;

-- Runs without an owner are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_owner" ON "runs" (("options"->>'owner'), "created_at", "id")
    WHERE "options"->>'owner' IS NOT NULL;

-- Only runs whose entries name owners are in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_owners" ON "runs" USING gin (("options"->'owners') jsonb_path_ops)
    WHERE "options"->'owners' IS NOT NULL;

-- Applies are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_planned" ON "runs" ("created_at", "id") WHERE "mode" = 'plan';

CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_kind" ON "runs" ("kind", "created_at");

-- It has the fields that lists filter by, so that a walk along the titles reads no run that does not match. Runs of one
-- title that are alike share an entry.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_title_with_fields" ON "runs" ("title", "kind", "state", "mode", "reason");

-- Runs that were applied are not in it. It holds the key: other orders sort it without the rows.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_by_reason_with_key" ON "runs" ("reason", "created_at", "id") WHERE "reason" IS NOT NULL;

-- What failed, was cancelled or refused, each by itself.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "runs_not_applied_by_state" ON "runs" ("state", "created_at", "id")
    WHERE "state" = 'failed' OR "state" = 'cancelled' OR ("state" = 'done' AND NOT "applied" AND "mode" = 'apply');

CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_time" ON "audit_rows" ("at", "pk");

-- Rows of one user share an entry.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_user" ON "audit_rows" ("actor_pk");

-- Only what was done while impersonating is in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_real_user" ON "audit_rows" ("real_pk") WHERE "real_pk" IS NOT NULL;

-- Only equality is asked for, here and in the next one.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_run" ON "audit_rows" USING HASH ("run_id") WHERE "run_id" IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_by_request" ON "audit_rows" USING HASH ("request_id");

-- Applies, of which there are most, are not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_rows_of_other" ON "audit_rows" ("pk") WHERE "action" <> 'apply';
