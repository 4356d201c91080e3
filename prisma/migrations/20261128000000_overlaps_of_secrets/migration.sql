-- Few providers hold the client secret before: those whose overlap has ended are found every minute.
CREATE INDEX "providers_previous_client_secret" ON "providers" ("pk")
  WHERE jsonb_exists("settings", 'previous_client_secret_expires');
