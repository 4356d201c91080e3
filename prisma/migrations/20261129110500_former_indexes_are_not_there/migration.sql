-- The indexes of large tables take their places. No row is read, so the locks are short.
DROP INDEX "runs_request_id_idx";
DROP INDEX "tokens_identifier_key";
DROP INDEX "users_username_folded";
DROP INDEX "users_username_key";
DROP INDEX "users_uuid_key";
DROP INDEX "groups_name_folded";
