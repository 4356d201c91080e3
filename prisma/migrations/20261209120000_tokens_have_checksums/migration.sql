-- The id of the key that made the checksum in a token's secret. null: none did, so it is looked for among the others.
ALTER TABLE "tokens" ADD COLUMN "checksum_key" TEXT;
