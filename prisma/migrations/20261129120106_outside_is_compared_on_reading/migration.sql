-- What was changed past the service is compared with the recorded changes when somebody looks: no change has a digest.
ALTER TABLE "run_objects" DROP COLUMN "digest";

ALTER TABLE "installation" DROP COLUMN "outside_checked_at",
DROP COLUMN "outside_after";

DROP TABLE "outside_changes";

DROP FUNCTION object_digest(bytea, jsonb);

DROP FUNCTION object_state(applications);

DROP FUNCTION object_state(providers);
