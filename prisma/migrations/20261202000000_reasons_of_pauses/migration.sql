-- Why the queue is paused, as the operator says it.
ALTER TABLE "queue_pauses" ADD COLUMN "reason" VARCHAR(200);
