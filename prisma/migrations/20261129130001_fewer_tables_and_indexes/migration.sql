-- Plots count the rows of runs.
DROP TABLE "run_folds";

DROP TABLE "run_sums";

-- Each run has its own log and changes.
ALTER TABLE "runs" DROP COLUMN "shared_result";

DROP TABLE "shared_results";

-- How far audit rows had become histories: all have.
ALTER TABLE "installation" DROP COLUMN "history_filled",
DROP COLUMN "history_fill_until";

-- Streams of events needed more than the transaction of the last change: requests that wait for one do not.
CREATE OR REPLACE FUNCTION "keep_position_of_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW."changed_in" := pg_current_xact_id()::text::bigint;
  RETURN NEW;
END $$;

ALTER TABLE "runs" DROP COLUMN "recorded_in",
DROP COLUMN "recorded_after",
DROP COLUMN "changed_after";

ALTER TABLE "run_attempts" DROP COLUMN "recorded_after";

-- What was changed past the service is compared with the recorded changes when somebody looks: no change has a digest.
ALTER TABLE "run_objects" DROP COLUMN "digest";

ALTER TABLE "installation" DROP COLUMN "outside_checked_at",
DROP COLUMN "outside_after";

DROP TABLE "outside_changes";

DROP FUNCTION object_digest(bytea, jsonb);

DROP FUNCTION object_state(applications);

DROP FUNCTION object_state(providers);

-- An apply pays for each index: what an order or a filter of a list uses alone reads the table
-- (docs/adr/0051-few-indexes-and-a-light-run-row.md). States between 0.2.0 and 0.3.0 have more of them than 0.2.0.
DROP INDEX IF EXISTS "runs_submitter_pk_created_at_id_idx", "runs_slug_created_at_idx", "runs_by_request", "runs_by_owner",
  "runs_by_owners", "runs_planned", "runs_by_kind", "runs_by_title_with_fields", "runs_by_reason_with_key",
  "runs_not_applied_by_state";
DROP INDEX IF EXISTS "tokens_created_by_idx", "tokens_search", "tokens_description_pk_idx", "tokens_intent_pk_idx",
  "tokens_expires_pk_idx";
DROP INDEX IF EXISTS "users_name_pk_idx", "users_email_pk_idx", "users_path_pk_idx", "users_path_prefix",
  "users_type_pk_idx", "users_is_active_pk_idx", "users_last_login_pk_idx", "users_attributes", "users_username_search";
DROP INDEX IF EXISTS "groups_parent_idx", "groups_is_superuser_pk_idx", "groups_search", "groups_attributes",
  "groups_with_settings";
DROP INDEX IF EXISTS "group_roles_role_pk_idx";
DROP INDEX IF EXISTS "applications_name_pk_idx", "applications_search", "applications_by_owner";
DROP INDEX IF EXISTS "providers_kind_pk_idx", "providers_search", "providers_by_owner";
-- Deleting a referenced row reads all references, but for what a prune deletes many of.
DROP INDEX IF EXISTS "provider_references_property_mapping", "provider_references_certificate_key_pair",
  "provider_references_group", "provider_references_flow", "provider_references_role", "provider_references_user";
DROP INDEX IF EXISTS "flows_name_pk_idx", "property_mappings_name_idx";
DROP INDEX IF EXISTS "totp_devices_name_pk_idx", "totp_devices_search", "user_consents_user_pk_expires_pk_idx",
  "user_consents_expires_pk_idx", "dashboard_sessions_token_pk_idx", "dashboard_sessions_expires_idx";
DROP INDEX IF EXISTS "audit_rows_by_time", "audit_rows_by_user", "audit_rows_by_real_user", "audit_rows_by_run",
  "audit_rows_by_request", "audit_rows_of_other";
DROP INDEX IF EXISTS "row_counts_table_name_rows_idx", "idempotency_keys_created_at_idx", "installation_id_key",
  "run_attempts_by_record";

-- A sequence and random keys: no statement looks for them.
DROP INDEX IF EXISTS "groups_num_pk_key", "totp_devices_uuid_key";

-- A search of runs reads their titles.
DROP TRIGGER IF EXISTS "runs_keep_titles" ON "runs";
DROP FUNCTION IF EXISTS "keep_run_title"();
DROP TABLE IF EXISTS "run_titles";
DROP STATISTICS IF EXISTS "runs_titles", "runs_owners";

-- The keys and the names of the objects of an audit row, by which their histories find it.
ALTER TABLE "audit_rows" ADD COLUMN "objects" TEXT[];
