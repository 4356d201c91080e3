-- Outside of a transaction: writes go on while the index is built.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "user_consents_user_pk_expires_pk_idx"
  ON "user_consents" ("user_pk", "expires", "pk");
