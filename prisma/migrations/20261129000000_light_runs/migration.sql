-- The sealed document lies outside of its row, unless the row is small: the UPDATE that ends a run does not copy it. Rows
-- that exist stay as they are (docs/adr/0051-few-indexes-and-a-light-run-row.md).
ALTER TABLE "runs" RESET (toast_tuple_target);

-- Indexes that no statement uses. These four only served the deletion of a flow, which now reads all providers once, and
-- the uniqueness of random numbers.
DROP INDEX "providers_authentication_flow";
DROP INDEX "providers_authorization_flow";
DROP INDEX "providers_invalidation_flow";
DROP INDEX "providers_uuid_key";
DROP INDEX "audit_rows_run_id_idx";
DROP INDEX "audit_rows_actor_pk_at_idx";
